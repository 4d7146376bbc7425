"""Hashes whole rows, to split rows that no column can split."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as t

from dbt_zorder.spark.sql import quote_name


def row_hash(schema: t.StructType, count: int | str) -> str:
    """Return SQL text of an INT from 0 to below ``count``, a number or SQL text; equal rows have equal hashes."""
    hashed = ", ".join(_hashable(schema, ())) or "0"
    return f"CAST(pmod(xxhash64({hashed}), {count}) AS INT)"


def _hashable(schema: t.StructType, path: tuple[str, ...]) -> Iterable[str]:
    """Yield SQL text of the columns that Spark can hash, and of hashable leaves of other structs."""
    for field in schema.fields:
        here = (*path, field.name)
        if _can_hash(field.dataType):
            yield quote_name(*here)
        elif isinstance(field.dataType, t.StructType):
            yield from _hashable(field.dataType, here)


def _can_hash(data_type: t.DataType) -> bool:
    """Return whether Spark can hash a type: all except maps, variants, and types that contain one."""
    if isinstance(data_type, t.StructType):
        return all(_can_hash(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return _can_hash(data_type.elementType)
    return not isinstance(data_type, t.MapType) and data_type.typeName() != "variant"
