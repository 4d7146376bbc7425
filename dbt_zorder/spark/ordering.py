"""Decide which types Spark can order: it can sort by them, and compute their minimum and maximum."""

from __future__ import annotations

from pyspark.sql import types as t

_ORDERED = (
    t.BooleanType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.FloatType,
    t.DoubleType,
    t.DecimalType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
    t.DayTimeIntervalType,
    t.YearMonthIntervalType,
    t.StringType,
    t.CharType,
    t.VarcharType,
    t.BinaryType,
)
_TIME = "time("
"""Prefix of the name of a type that PySpark 3.5 does not have."""


def is_ordered(data_type: t.DataType) -> bool:
    """Return whether Spark can order a type as a whole: not maps and variants, nor types that contain them."""
    if isinstance(data_type, t.StructType):
        return all(is_ordered(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return is_ordered(data_type.elementType)
    return isinstance(data_type, _ORDERED) or data_type.simpleString().startswith(_TIME)
