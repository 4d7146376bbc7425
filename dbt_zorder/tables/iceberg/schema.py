"""Return the field ids of an Iceberg table's columns, after comparing their types with those of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as t

_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "string": "string",
    "binary": "binary",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""Iceberg's name of each type, by Spark's name."""


def field_numbers(kept: Mapping[str, Any], columns: t.StructType) -> dict[tuple[str, ...], int] | None:
    """Return the field id of each column and nested field by path; None if the table stores another type.

    Args:
        kept: a struct in the JSON of Iceberg's specification ("Appendix C").
        columns: the columns of the files.
    """
    found: dict[tuple[str, ...], int] = {}
    return found if _record_struct(kept, columns, (), found) else None


def _record_struct(
    kept: Mapping[str, Any], columns: t.StructType, above: tuple[str, ...], found: dict[tuple[str, ...], int]
) -> bool:
    fields = {one["name"]: one for one in kept["fields"]}
    if {*fields} != {*columns.names}:
        return False
    for column in columns.fields:
        field = fields[column.name]
        if field["required"]:
            return False
        found[(*above, column.name)] = field["id"]
        if not _record(field["type"], column.dataType, (*above, column.name), found):
            return False
    return True


def _record(kept: Any, given: t.DataType, path: tuple[str, ...], found: dict[tuple[str, ...], int]) -> bool:
    """Record the field ids below a column, and return whether the table stores it in the same type."""
    if isinstance(kept, str):
        if isinstance(given, t.DecimalType):
            return kept == f"decimal({given.precision}, {given.scale})"
        return kept == _TYPES.get(given.simpleString())
    if kept["type"] == "struct" and isinstance(given, t.StructType):
        return _record_struct(kept, given, path, found)
    if kept["type"] == "list" and isinstance(given, t.ArrayType) and not kept["element-required"]:
        inner = (*path, "element")
        found[inner] = kept["element-id"]
        return _record(kept["element"], given.elementType, inner, found)
    if kept["type"] == "map" and isinstance(given, t.MapType) and not kept["value-required"]:
        found[(*path, "key")], found[(*path, "value")] = kept["key-id"], kept["value-id"]
        key = _record(kept["key"], given.keyType, (*path, "key"), found)
        return key and _record(kept["value"], given.valueType, (*path, "value"), found)
    return False
