"""Keys of column values, which are cheap to compare and can be sent to the driver.

A key keeps the order of its type. It may merge neighbours but never swaps them; text of any collation is ordered by its
bytes. The key of NULL is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from dbt_zorder.errors import ColumnError
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.ordering import is_ordered
from dbt_zorder.spark.sql import quote_name

TEXT = ("string", "binary")
"""Carriers of values of any length."""

SAMPLE_BYTES = 256
"""Limit on the bytes of strings and binaries in a sample; a cut between two files is never longer."""

_INTEGRAL = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.BooleanType)
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@dataclass(frozen=True)
class Key:
    """The key of one column.

    Attributes:
        column: the column that the key orders.
        expression: SQL text of the key.
        carrier: SQL type of the key.
    """

    column: ResolvedColumn
    expression: str
    carrier: str

    @property
    def sampled(self) -> str:
        """SQL text of the key in a sample: text becomes bytes, cut to ``SAMPLE_BYTES``."""
        if self.carrier == "string":
            return f"substr(CAST({self.expression} AS BINARY), 1, {SAMPLE_BYTES})"
        if self.carrier == "binary":
            return f"substr({self.expression}, 1, {SAMPLE_BYTES})"
        return self.expression


def key_of(column: ResolvedColumn) -> Key:
    """Return the key of a column.

    An array is ordered by its first element and a struct by its first field, as Spark's own order begins. This applies
    even if Spark cannot order the remaining elements or fields.

    Raises:
        ColumnError: the type has no order in Spark (map, variant, calendar interval, ...).
    """
    found = _key(column.sql, column.data_type)
    if found is None:
        msg = (
            f"The column '{column.name}' is of type {column.data_type.simpleString()}, which Spark cannot order. "
            "Numbers, text, binary, boolean, dates, timestamps and intervals can be used, and arrays and structs that "
            "begin with one of them; a leaf of a struct is named with dots."
        )
        raise ColumnError(msg)
    return Key(column, *found)


def _key(sql: str, data_type: t.DataType) -> tuple[str, str] | None:
    name = data_type.simpleString()
    if isinstance(data_type, _INTEGRAL):
        return f"CAST({sql} AS BIGINT)", "bigint"
    if isinstance(data_type, (t.FloatType, t.DoubleType)):
        return f"CAST({sql} AS DOUBLE)", "double"
    if isinstance(data_type, t.DecimalType):
        return sql, name
    if isinstance(data_type, t.DateType):
        return f"CAST(unix_date({sql}) AS BIGINT)", "bigint"
    if isinstance(data_type, t.TimestampType):
        return f"unix_micros({sql})", "bigint"
    if isinstance(data_type, t.TimestampNTZType):
        return sql, "timestamp_ntz"
    if isinstance(data_type, t.DayTimeIntervalType):
        return f"({_EPOCH} + {sql})", "timestamp_ntz"
    if isinstance(data_type, t.YearMonthIntervalType):
        return f"CAST(CAST({sql} AS INTERVAL MONTH) AS BIGINT)", "bigint"
    if isinstance(data_type, t.BinaryType):
        return sql, "binary"
    if name == "string" or name.startswith(("varchar", "char")):
        return sql, "string"
    if name.startswith("string collate"):
        return f"CAST({sql} AS BINARY)", "binary"
    if name.startswith("time("):
        return f"CAST({sql} AS STRING)", "string"
    if isinstance(data_type, t.ArrayType):
        return _key(f"get({sql}, 0)", data_type.elementType)
    if isinstance(data_type, t.StructType) and data_type.fields:
        first = data_type.fields[0]
        return _key(f"{sql}.{quote_name(first.name)}", first.dataType)
    return None


KeyValue = int | float | bytes | object
"""A key on the driver: int, float, Decimal, bytes, or int64 microseconds for ``timestamp_ntz``."""


def shortest_separator(below: bytes, above: bytes, *, text: bool) -> bytes:
    """Return the shortest prefix of ``above`` that is greater than ``below``.

    With ``text``, the prefix ends between two UTF-8 characters (unless ``above`` itself was cut inside its last one).
    """
    length = 0
    while length < min(len(below), len(above)) and below[length] == above[length]:
        length += 1
    end = length + 1
    while text and end < len(above) and above[end] & 0xC0 == 0x80:
        end += 1
    return above[:end]


def order_sql(keys: Sequence[Key]) -> list[str]:
    """Return SQL text of the expressions that sort rows by the columns themselves.

    Text with a collation is sorted by its bytes. A value that Spark can order only by its beginning is sorted by that.
    """

    def by_key(data_type: t.DataType) -> bool:
        return data_type.simpleString().startswith("string collate") or not is_ordered(data_type)

    return [key.expression if by_key(key.column.data_type) else key.column.sql for key in keys]
