"""The shape of the stats table: one row a live data file."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

STATS_DIRECTORY = "_zorder_stats"
"""Folder inside a version's own directory; Spark reads no data from names that begin with an underscore."""

STATS_SUFFIX = "__zorder_stats"
"""What the relation over that folder is called, behind the table's own identifier."""


def column_stats_type(data_type: DataType) -> StructType:
    """Return the type of one column's statistics; the bounds have the column's own type.

    ``null_count`` counts rows in which the column is NULL, which for a struct leaf includes rows whose struct is NULL.
    Both bounds are NULL when every row is NULL.
    """
    return StructType(
        [
            StructField("min_value", data_type),
            StructField("max_value", data_type),
            StructField("null_count", LongType()),
        ]
    )


def columns_type(stats: DataFrame) -> StructType:
    """Return the struct of all columns that some stats are of, by their dotted names."""
    found = stats.schema["columns"].dataType
    assert isinstance(found, StructType)
    return found


def stats_schema(columns: Mapping[str, DataType]) -> StructType:
    """Return the schema of a stats table over ``columns``, keyed by column name (struct leaves by their dotted path).

    ``file_path`` is the raw ``_metadata.file_path``, still URL-encoded: it is only ever compared with itself.
    """
    return StructType(
        [
            StructField("file_path", StringType()),
            StructField("file_size", LongType()),
            StructField("row_count", LongType()),
            StructField("version", StringType()),
            StructField(
                "columns",
                StructType([StructField(name, column_stats_type(dtype)) for name, dtype in columns.items()]),
            ),
        ]
    )
