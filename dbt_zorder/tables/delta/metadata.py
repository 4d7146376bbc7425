"""Read and compare the metadata of a Delta table."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as t


def metadata_of(snapshot: Any) -> dict[str, Any]:
    """Return the metadata action of a table, with the schema in the form of ``stored_schema``."""
    found: dict[str, Any] = json.loads(str(snapshot.metadata().json()))["metaData"]
    found["schemaString"] = json.loads(found["schemaString"])
    return found


def protocol_of(snapshot: Any) -> dict[str, Any]:
    """Return the protocol action of a table: its requirements for readers and writers."""
    found: dict[str, Any] = json.loads(str(snapshot.protocol().json()))["protocol"]
    return found


def stored_schema(schema: t.StructType) -> Any:
    """Return a schema as Delta stores it, with every field nullable."""
    return json.loads(t.StructType([_kept(one) for one in schema.fields]).json())


def _kept(field: t.StructField) -> t.StructField:
    return t.StructField(field.name, _nullable(field.dataType), True, field.metadata)


def _nullable(kind: t.DataType) -> t.DataType:
    if isinstance(kind, t.StructType):
        return t.StructType([_kept(one) for one in kind.fields])
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, t.MapType):
        return t.MapType(_nullable(kind.keyType), _nullable(kind.valueType), True)
    return kind


def has_extra_metadata(schema: Any) -> bool:
    """Return whether columns have metadata besides comments: defaults, rules, physical names, or text lengths."""
    if isinstance(schema, list):
        return any(map(has_extra_metadata, schema))
    if not isinstance(schema, dict):
        return False
    return bool({*schema.get("metadata", ())} - {"comment"}) or any(map(has_extra_metadata, schema.values()))
