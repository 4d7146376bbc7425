"""Write the rows of an Arrow table as a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, TimestampType

from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import quote_name, quote_string


def rows_sql(table: pa.Table, schema: StructType) -> str:
    """Return a query of the rows of an Arrow table, each value as a text that Spark casts.

    Args:
        table: rows of columns in the order of the schema.
        schema: names and types of the columns.

    Raises:
        UnsupportedError: a column is an array or a map.
    """
    if not table.num_rows:
        fields = [f"CAST(NULL AS {type_ddl(one.dataType)}) AS {quote_name(one.name)}" for one in schema.fields]
        return f"SELECT {', '.join(fields)} WHERE false"
    texts: list[list[str]] = []
    fields = []
    for column, field in zip(table.columns, schema.fields, strict=True):
        first = len(texts)
        texts += _texts(column.combine_chunks(), field.dataType)
        names = (f"c{number}" for number in range(first, len(texts)))
        fields.append(f"{_value(names, field.dataType)} AS {quote_name(field.name)}")
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*texts, strict=True))
    names = (f"c{number}" for number in range(len(texts)))
    return f"SELECT {', '.join(fields)} FROM VALUES {rows} AS local_rows({', '.join(names)})"


def _texts(column: pa.Array, kind: DataType) -> Iterator[list[str]]:
    """Yield the literals of a column; of a struct, whether it is NULL, and then those of its fields."""
    if isinstance(kind, StructType):
        yield ["true" if absent else "false" for absent in column.is_null().to_pylist()]
        for place, field in enumerate(kind.fields):
            yield from _texts(pc.struct_field(column, place), field.dataType)
        return
    if isinstance(kind, ArrayType | MapType):
        msg = f"Values of the type {kind.simpleString()} cannot be sent to an SQL endpoint."
        raise UnsupportedError(msg)
    write: Callable[[Any], str] = str
    if isinstance(kind, TimestampType):
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    elif isinstance(kind, BinaryType):
        write = bytes.hex
    yield ["NULL" if value is None else quote_string(write(value)) for value in column.to_pylist()]


def _value(names: Iterator[str], kind: DataType) -> str:
    """Return the SQL of a value, of the names of its literals."""
    name = next(names)
    if isinstance(kind, StructType):
        fields = ", ".join(f"{quote_string(one.name)}, {_value(names, one.dataType)}" for one in kind.fields)
        return f"IF({name}, NULL, named_struct({fields}))"
    if isinstance(kind, TimestampType):
        return f"timestamp_micros(CAST({name} AS BIGINT))"
    if isinstance(kind, BinaryType):
        return f"unhex({name})"
    return f"CAST({name} AS {type_ddl(kind)})"
