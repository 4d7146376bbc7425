"""What a Delta table is, as its log has it."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as t


def metadata_of(snapshot: Any) -> dict[str, Any]:
    """Return what a table is, as its log has it; the schema as ``columns_kept`` gives it."""
    found: dict[str, Any] = json.loads(str(snapshot.metadata().json()))["metaData"]
    found["schemaString"] = json.loads(found["schemaString"])
    return found


def protocol_of(snapshot: Any) -> dict[str, Any]:
    """Return what a table asks of readers and writers."""
    found: dict[str, Any] = json.loads(str(snapshot.protocol().json()))["protocol"]
    return found


def columns_kept(schema: t.StructType) -> Any:
    """Return a schema as Delta keeps it, all of which may be NULL."""
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


def says_more(schema: Any) -> bool:
    """Tell whether columns have more than comments: defaults, rules, what they are stored as, or lengths of text."""
    if isinstance(schema, list):
        return any(map(says_more, schema))
    if not isinstance(schema, dict):
        return False
    return bool({*schema.get("metadata", ())} - {"comment"}) or any(map(says_more, schema.values()))
