"""Which of the bit encodings serves a column, by its type."""

from __future__ import annotations

from pyspark.sql import types as t

from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.curve.bits import bits_sql
from dbt_zorder.sql import quote_name


def bits_of(column: ResolvedColumn) -> str:
    """Return SQL text of a column's 64 ordered bits, see ``dbt_zorder.curve.bits``.

    As in ``key_of``, an array counts by its first element and a struct by its first field.
    """
    return bits_sql(*_kind(column.sql, column.data_type))


def _kind(sql: str, data_type: t.DataType) -> tuple[str, str]:
    """Return SQL text and kind of what stands for a value; the type is one that ``key_of`` accepts."""
    name = data_type.simpleString()
    if isinstance(data_type, t.DayTimeIntervalType):
        return sql, "micros"
    if isinstance(data_type, t.YearMonthIntervalType):
        return sql, "months"
    if isinstance(data_type, t.ArrayType):
        return _kind(f"get({sql}, 0)", data_type.elementType)
    if isinstance(data_type, t.StructType):
        first = data_type.fields[0]
        return _kind(f"{sql}.{quote_name(first.name)}", first.dataType)
    if name.startswith("time("):
        return f"CAST({sql} AS STRING)", "string"
    if name.startswith(("string", "varchar", "char")):
        return sql, "string"  # text of any collation goes by its bytes
    return sql, name
