"""A hash over whole rows, which parts what no column can."""

from __future__ import annotations

from pyspark.sql import types as t

from dbt_zorder.sql import quote_name


def row_hash(schema: t.StructType, count: int | str) -> str:
    """Return SQL text of an INT that is the same for equal rows, from 0 to below ``count``, a number or SQL text."""
    hashed = ", ".join(quote_name(field.name) for field in schema.fields if _can_hash(field.dataType)) or "0"
    return f"CAST(pmod(xxhash64({hashed}), {count}) AS INT)"


def _can_hash(data_type: t.DataType) -> bool:
    """Tell whether Spark can hash a type: all but maps, variants, and what holds one."""
    if isinstance(data_type, t.StructType):
        return all(_can_hash(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return _can_hash(data_type.elementType)
    return not isinstance(data_type, t.MapType) and data_type.typeName() != "variant"
