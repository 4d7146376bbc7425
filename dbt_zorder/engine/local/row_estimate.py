"""What rows of a query take in this process by their types, and how much of it may be fetched."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from dbt_zorder.layout.keys import TEXT
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.spark.sql import quote_name

_SHARE_OF_HEAP = 8
"""What Spark's tasks send stands there more than once on its way: as rows of each task, and as the result of all."""
_OFFSET = 4
"""Bytes that a value of text takes besides itself."""
_TEXT_WIDTH = 16
"""Bytes that a value of text is taken for."""
MOST_TEXTS = 32
"""Columns of text: with more, whether they are long takes longer to reckon than a shuffle does."""
LEAST_WIDTH = 32
"""Bytes that a row is taken for at least: to place it takes some, whatever it holds."""
SLACK = 3
"""So many times as much as rows are taken for may their text weigh besides."""
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


def estimated_row_bytes(schema: t.StructType, *, nested: bool = False) -> int | None:
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


def text_length(df: DataFrame) -> str:
    """Return SQL text of how many bytes of text a row has."""
    return " + ".join(f"coalesce(octet_length({quote_name(name)}), 0L)" for name in texts_of(df.schema)) or "0L"
