"""The numbers by which an Iceberg table knows its columns, if it keeps them as the types that they are of."""

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
"""By Spark's name of a type, what Iceberg keeps it as."""


def field_numbers(kept: Mapping[str, Any], columns: t.StructType) -> dict[tuple[str, ...], int] | None:
    """Return the number of each column, and of what is in it, by its path; None if the table keeps another type.

    Args:
        kept: a struct as Iceberg's specification has it in JSON ("Appendix C").
        columns: of the files.
    """
    found: dict[tuple[str, ...], int] = {}
    return found if _take_struct(kept, columns, (), found) else None


def _take_struct(
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
        if not _take(field["type"], column.dataType, (*above, column.name), found):
            return False
    return True


def _take(kept: Any, given: t.DataType, path: tuple[str, ...], found: dict[tuple[str, ...], int]) -> bool:
    """Note the numbers of what is in a column; tell whether the table keeps it as the type that it is of."""
    if isinstance(kept, str):
        if isinstance(given, t.DecimalType):
            return kept == f"decimal({given.precision}, {given.scale})"
        return kept == _TYPES.get(given.simpleString())
    if kept["type"] == "struct" and isinstance(given, t.StructType):
        return _take_struct(kept, given, path, found)
    if kept["type"] == "list" and isinstance(given, t.ArrayType) and not kept["element-required"]:
        inner = (*path, "element")
        found[inner] = kept["element-id"]
        return _take(kept["element"], given.elementType, inner, found)
    if kept["type"] == "map" and isinstance(given, t.MapType) and not kept["value-required"]:
        found[(*path, "key")], found[(*path, "value")] = kept["key-id"], kept["value-id"]
        key = _take(kept["key"], given.keyType, (*path, "key"), found)
        return key and _take(kept["value"], given.valueType, (*path, "value"), found)
    return False
