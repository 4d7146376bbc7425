"""Which queries have so few rows that they are laid out in this process: by types, files, counts and measured text."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.layout.keys import TEXT
from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.spark.small_queries import SMALL_BYTES, estimated_bytes
from dbt_zorder.spark.sql import quote_name

_SHARE_OF_HEAP = 8
"""What Spark's tasks send stands there more than once on its way: as rows of each task, and as the result of all."""
_UNKNOWN = 4
"""A part of what may be held, that rows are taken for which nobody has counted: those of small files."""
_OFFSET = 4
"""Bytes that a value of text takes besides itself."""
_TEXT_WIDTH = 16
"""Bytes that a value of text is taken for, where nobody has measured it."""
MOST_TEXTS = 32
"""Columns of text: with more, whether they are long takes longer to reckon than a shuffle does."""
LEAST_WIDTH = 32
"""Bytes that a row is taken for at least: to place it takes some, whatever it holds."""
SLACK = 3
"""So many times as much as rows are taken for may their text weigh besides, where nobody has measured it."""
_MOST_COLUMN = (1 << 31) - 1
"""Bytes of a column of text in one chunk, whose offsets have 32 bits."""
_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "date": 4,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "string": _TEXT_WIDTH,
    "binary": _TEXT_WIDTH,
}
"""Bytes of a value in Arrow, of the types that Arrow and Spark store alike; a decimal takes 16."""


def width_of(schema: t.StructType, *, nested: bool = False) -> int | None:
    """Return the bytes that a row takes in memory, text by a guess; None if it has a type that stays in Spark.

    All that Parquet has no type of its own for does, and nested types do unless they are asked for: then an array, or a
    map, is taken for one of a single element.
    """
    widths = [_width(field.dataType, nested) for field in schema.fields]
    return None if None in widths else max(LEAST_WIDTH, sum(width or 0 for width in widths))


def _width(data_type: t.DataType, nested: bool) -> int | None:
    if isinstance(data_type, t.DecimalType):
        return 16
    if isinstance(data_type, t.UserDefinedType):
        return None
    inner = inner_types(data_type)
    if not inner:
        return _WIDTHS.get(data_type.simpleString())
    widths = [_width(one, nested) for one in inner] if nested else [None]
    return None if None in widths else _OFFSET + sum(width or 0 for width in widths)


def inner_types(data_type: t.DataType) -> list[t.DataType]:
    """Return the types of what a value holds, if it is nested."""
    if isinstance(data_type, t.StructType):
        return [field.dataType for field in data_type.fields]
    if isinstance(data_type, t.ArrayType):
        return [data_type.elementType]
    return [data_type.keyType, data_type.valueType] if isinstance(data_type, t.MapType) else []


def texts_of(schema: t.StructType) -> list[str]:
    """Return the names of the columns that are text or binary."""
    return [field.name for field in schema.fields if field.dataType.simpleString() in TEXT]


def most_bytes_of(spark: SparkSession, allowed: int) -> int:
    """Return how much may be fetched of what is allowed: no more than Spark's own memory takes well, and 512 MB."""
    jvm: Any = jvm_of(spark)
    if jvm is None:
        return 0
    heap = int(class_named(jvm, "java.lang.Runtime").getRuntime().maxMemory())
    context: Any = spark._jsc
    result = int(context.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g")) or heap
    return min(allowed, heap // _SHARE_OF_HEAP, result // (1 + SLACK), _MOST_COLUMN // (1 + SLACK))


def measure_few(df: DataFrame, most_bytes: int, *, kept: bool, parted: bool) -> tuple[bool, int | None, int]:
    """Tell whether a query has so few rows that they are worth fetching.

    Args:
        df: the query, of types that ``width_of`` knows.
        most_bytes: that its rows may weigh here.
        kept: its result is kept once it has run, so that it is measured here whatever its files tell.
        parted: the table has partitions, whose rows will be counted by partition, if not here.

    Returns:
        Whether it has, the number of rows if they were counted, and the bytes that they are expected to take.
    """
    width = width_of(df.schema)
    if not width or not most_bytes:
        return False, None, 0
    length = f.expr(f"sum(CAST({text_length(df)} AS BIGINT))")
    texts = len(texts_of(df.schema))
    least = max(LEAST_WIDTH, width - (_TEXT_WIDTH - _OFFSET) * texts)
    if kept:
        rows, text = df.agg(f.count(f.lit(1)), length).collect()[0]
    else:
        estimate = estimated_bytes(df)
        if estimate is not None and estimate <= min(SMALL_BYTES, most_bytes):
            return True, None, most_bytes // _UNKNOWN
        if parted:
            return False, None, 0
        # of a large scan with a filter nobody knows; the count is needed anyway, and without one it is but metadata
        rows = df.count()
        if rows * least > most_bytes:
            return False, rows, rows * least
        text = df.agg(length).collect()[0][0] if texts else 0
    size = rows * least + int(text or 0)
    return size <= most_bytes, rows, size


def text_length(df: DataFrame) -> str:
    """Return SQL text of how many bytes of text a row has."""
    return " + ".join(f"coalesce(octet_length({quote_name(name)}), 0L)" for name in texts_of(df.schema)) or "0L"
