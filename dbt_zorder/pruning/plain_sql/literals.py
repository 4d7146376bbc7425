"""Write a value as SQL that every session reads as exactly this value of exactly this type."""

from __future__ import annotations

import datetime as dt
import math
import re

import pyarrow as pa
from pyspark.sql import types as t

from dbt_zorder.pruning.predicate.names import plain_string
from dbt_zorder.spark.sql import quote_string

_CHARACTERS_AT_MOST = 10_000
_SPECIAL = re.compile(r"\s*(?:(?:epoch|now|today|tomorrow|yesterday)\b|T?\d{1,2}:)", re.IGNORECASE)
"""Texts that a literal may turn into a date or a time, where the result of a query does not or at another moment."""

_EPOCH = dt.datetime(1970, 1, 1)

_NAMES: dict[type[t.DataType], str] = {
    t.BooleanType: "BOOLEAN",
    t.ByteType: "TINYINT",
    t.ShortType: "SMALLINT",
    t.IntegerType: "INT",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimestampType: "TIMESTAMP_LTZ",  # TIMESTAMP may mean the other one, by a setting
    t.TimestampNTZType: "TIMESTAMP_NTZ",
    t.StringType: "STRING",
    t.BinaryType: "BINARY",
}


def type_name(data_type: t.DataType) -> str | None:
    """Return the name of a type whose values can be written exactly; None for any other type."""
    if isinstance(data_type, t.DecimalType):
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if isinstance(data_type, t.StringType) and not plain_string(data_type):
        return None
    return _NAMES.get(type(data_type))


def exact_literal(value: pa.Scalar, data_type: t.DataType) -> str | None:
    """Return SQL of a value, without a call that a session could hide; None if the value cannot be written exactly.

    The SQL is a cast, because Spark treats a bare literal by rules of its own: ``1`` as a column's position, and 1.5 as
    a decimal of its own length. Zeros of floats and NaN are left, because Parquet compares them in another way.

    Args:
        value: the value, as Arrow gets it from Spark.
        data_type: Spark's type of the value.
    """
    name = type_name(data_type)
    if name is None:
        return None
    text = _text(value, data_type) if value.is_valid else "NULL"
    return None if text is None else f"CAST({text} AS {name})"


def _text(value: pa.Scalar, data_type: t.DataType) -> str | None:
    match data_type:
        case t.TimestampType():
            moment = _moment(value)
            return None if moment is None else f"TIMESTAMP_LTZ '{moment}Z'"
        case t.TimestampNTZType():
            moment = _moment(value)
            return None if moment is None else f"TIMESTAMP_NTZ '{moment}'"
        case t.BinaryType():
            return f"X'{value.as_py().hex()}'" if len(value.as_py()) <= _CHARACTERS_AT_MOST else None
        case t.StringType():
            text = value.as_py()
            return quote_string(text) if len(text) <= _CHARACTERS_AT_MOST and not _SPECIAL.match(text) else None
        case t.FloatType() | t.DoubleType():
            return _float(value.as_py())
        case t.DecimalType():
            return f"'{value.as_py():f}'"
        case t.DateType():
            return f"DATE '{value.as_py().isoformat()}'"
    return str(value.as_py())


def _moment(value: pa.Scalar) -> str | None:
    try:
        moment = _EPOCH + dt.timedelta(microseconds=value.value)
    except OverflowError:  # a year that has not four digits
        return None
    return moment.isoformat(sep=" ", timespec="microseconds")


def _float(value: float) -> str | None:
    if value == 0 or math.isnan(value):
        return None
    return f"'{repr(value).replace('inf', 'Infinity')}'"
