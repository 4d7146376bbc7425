"""Fetch the rows of a query as an Arrow table.

HiveServer2's protocol has no types for dates, times, decimals and nested values, and sends texts in place of them. So
each column is selected in a form that the protocol keeps: integers, doubles and plain texts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import quote_name

_AS_IT_IS = (t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.DoubleType, t.StringType)
_IN_JSON = (t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.StringType, t.NullType)
"""Types that JSON keeps inside arrays."""


def fetch(rows_of: Callable[[str], Sequence[Sequence[Any]]], sql: str, schema: t.StructType) -> pa.Table:
    """Return the rows of a query.

    Args:
        rows_of: function that returns the rows of a statement.
        sql: query.
        schema: its columns.

    Raises:
        UnsupportedError: a column has a type that cannot be fetched.
    """
    names = [f"c{number}" for number in range(len(schema.fields))]
    items = [item for name, one in zip(names, schema.fields, strict=True) for item in _items(name, one.dataType)]
    rows = rows_of(f"SELECT {', '.join(items)} FROM (\n{sql}\n) AS fetched({', '.join(names)})")
    columns = iter([list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in items])
    arrays = [_array(columns, one.dataType) for one in schema.fields]
    # names may repeat
    return pa.Table.from_arrays(arrays, schema.names)


def _items(value: str, kind: t.DataType) -> Iterator[str]:
    """Yield the SQL of what is fetched of a value."""
    if isinstance(kind, t.StructType):
        yield f"{value} IS NULL"
        for field in kind.fields:
            yield from _items(f"{value}.{quote_name(field.name)}", field.dataType)
    elif isinstance(kind, _AS_IT_IS):
        yield value
    elif isinstance(kind, t.FloatType):
        yield f"CAST({value} AS DOUBLE)"
    elif isinstance(kind, t.DecimalType | t.TimestampNTZType):
        yield f"CAST({value} AS STRING)"
    elif isinstance(kind, t.DateType):
        yield f"unix_date({value})"
    elif isinstance(kind, t.TimestampType):
        yield f"unix_micros({value})"
    elif isinstance(kind, t.BinaryType):
        yield f"base64({value})"
    elif isinstance(kind, t.NullType):
        yield f"CAST({value} AS STRING)"  # which fails if the value does
    elif isinstance(kind, t.ArrayType) and _in_json(kind.elementType):
        yield f"to_json({value}, map('ignoreNullFields', 'false'))"
    else:
        msg = f"Values of the type {kind.simpleString()} cannot be fetched from an SQL endpoint."
        raise UnsupportedError(msg)


def _in_json(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        return all(_in_json(field.dataType) for field in kind.fields)
    return isinstance(kind, _IN_JSON) or (isinstance(kind, t.ArrayType) and _in_json(kind.elementType))


def _array(columns: Iterator[list[Any]], kind: t.DataType) -> pa.Array:
    """Return the next column as Arrow's array, made of the columns that ``_items`` selected."""
    values = next(columns)
    if isinstance(kind, t.StructType):
        inner = [_array(columns, field.dataType) for field in kind.fields]
        fields = [pa.field(field.name, one.type) for field, one in zip(kind.fields, inner, strict=True)]
        if not inner:
            return pa.array([None if absent else {} for absent in values], pa.struct([]))
        return pa.StructArray.from_arrays(inner, fields=fields, mask=pa.array(values, pa.bool_()))
    arrow = to_arrow_type(kind)
    if isinstance(kind, t.DecimalType):
        return pa.array([None if value is None else Decimal(value) for value in values], arrow)
    if isinstance(kind, t.TimestampNTZType):
        # a year of more than four digits has a sign
        return pa.array(np.asarray([value and value.lstrip("+") for value in values], "datetime64[us]"), arrow)
    if isinstance(kind, t.DateType):
        return pa.array(values, pa.int32()).cast(arrow)
    if isinstance(kind, t.TimestampType):
        return pa.array(values, pa.int64()).cast(arrow)
    if isinstance(kind, t.BinaryType):
        return pa.array([None if value is None else base64.b64decode(value) for value in values], arrow)
    if isinstance(kind, t.ArrayType):
        return pa.array([None if value is None else json.loads(value) for value in values], arrow)
    return pa.array(values, arrow)


def statement_table(rows: Sequence[Sequence[Any]], description: Sequence[Sequence[Any]]) -> pa.Table:
    """Return the rows of a statement that is no query, such as SHOW TABLES.

    Args:
        rows: rows as the cursor gives them.
        description: name and type of each column, as DB-API 2 has them.
    """
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in description]
    arrays = []
    for column in columns:
        array = pa.array(column)
        arrays.append(array.cast(pa.string()) if pa.types.is_null(array.type) else array)
    return pa.Table.from_arrays(arrays, [str(one[0]) for one in description])
