"""Types whose values Spark can order: it sorts by them as a whole, and knows a least and a greatest one."""

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
"""How the name of a type begins that PySpark 3.5 does not have."""


def is_ordered(data_type: t.DataType) -> bool:
    """Tell whether Spark can order a type as a whole: not maps and variants, nor what holds one."""
    if isinstance(data_type, t.StructType):
        return all(is_ordered(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return is_ordered(data_type.elementType)
    return isinstance(data_type, _ORDERED) or data_type.simpleString().startswith(_TIME)
