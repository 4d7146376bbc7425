"""Estimates the bytes of a query's rows in memory from their types, and limits how many may be fetched."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from dbt_zorder.layout.keys import TEXT
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.spark.sql import quote_name

_SHARE_OF_HEAP = 8
"""Divides Spark's heap into the bytes that may be fetched: task results are there more than once, as rows of each task
and as the whole result."""
_OFFSET = 4
"""Bytes of a text value in addition to its characters."""
_TEXT_WIDTH = 16
"""Assumed bytes of a text value."""
MOST_TEXTS = 32
"""Limit for the number of text columns: with more, checking their lengths takes longer than a shuffle."""
LEAST_WIDTH = 32
"""Minimum bytes per row: placing a row needs memory, whatever its columns are."""
SLACK = 3
"""Limit for the ratio of text bytes to estimated row bytes."""
_MOST_COLUMN = (1 << 31) - 1
"""Limit for the bytes of a text column in one chunk, whose offsets have 32 bits."""
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
"""Bytes of a value in Arrow, for the types that Arrow and Spark store alike; a decimal has 16."""


def estimated_row_bytes(schema: t.StructType, *, nested: bool = False) -> int | None:
    """Return the bytes of a row in memory, with a guess for text; None if it has a type that only Spark supports.

    Types without a Parquet type of their own are unsupported. Nested types are supported only if ``nested`` is true:
    then an array or a map counts as one of a single element.
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
    """Return how many of the allowed bytes may be fetched: at most what Spark's own memory bears, and 512 MB."""
    jvm: Any = jvm_of(spark)
    if jvm is None:
        return 0
    heap = int(class_named(jvm, "java.lang.Runtime").getRuntime().maxMemory())
    context: Any = spark._jsc
    result = int(context.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g")) or heap
    return min(allowed, heap // _SHARE_OF_HEAP, result // (1 + SLACK), _MOST_COLUMN // (1 + SLACK))


def text_length(df: DataFrame) -> str:
    """Return SQL text of the bytes of text in a row."""
    return " + ".join(f"coalesce(octet_length({quote_name(name)}), 0L)" for name in texts_of(df.schema)) or "0L"
