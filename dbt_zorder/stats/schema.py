"""Define the schema of the stats table: one row a live data file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from dbt_zorder.spark.sql import quote_name, quote_string

STATS_DIRECTORY = "_zorder_stats"
"""The folder inside a version's own directory; Spark reads no data from names that begin with an underscore."""

STATS_SUFFIX = "__zorder_stats"
"""The suffix of the stats relation's name, after the table's own identifier."""


def column_stats_type(data_type: DataType) -> StructType:
    """Return the type of one column's statistics; the bounds have the column's own type.

    ``null_count`` counts rows in which the column is NULL. For a struct leaf, this includes rows with a NULL struct.
    Both bounds are NULL when every row is NULL.
    """
    return StructType(
        [
            StructField("min_value", data_type),
            StructField("max_value", data_type),
            StructField("null_count", LongType()),
        ]
    )


def columns_type(schema: StructType) -> StructType:
    """Return the struct of all columns in a stats schema, by dotted name."""
    found = schema["columns"].dataType
    assert isinstance(found, StructType)
    return found


def columns_struct(bounds: Sequence[Column]) -> list[Column]:
    """Return the struct of column statistics to select.

    Return nothing for no columns in PySpark 3.5, which has no empty struct.
    """
    return [f.struct(*bounds).alias("columns")] if bounds or hasattr(DataFrame, "toArrow") else []


def with_bounds(stats: DataFrame, change: Callable[[DataType | None, str, str], tuple[str, str]]) -> DataFrame:
    """Return stats with other bounds: ``change`` computes them from a column's type and the SQL of both bounds."""

    def changed(field: StructField, low: str, high: str, nulls: str) -> tuple[str, str, str]:
        kind = field.dataType["max_value"].dataType if isinstance(field.dataType, StructType) else None
        return *change(kind, low, high), nulls

    return with_measures(stats, changed)


def with_measures(stats: DataFrame, change: Callable[[StructField, str, str, str], tuple[str, str, str]]) -> DataFrame:
    """Return stats with other bounds and counts.

    ``change`` computes them from a column's field and the SQL of all three.
    """
    columns = stats.schema["columns"].dataType if "columns" in stats.columns else None
    if not isinstance(columns, StructType):
        return stats
    fields = []
    for field in columns.fields:
        here = f"columns.{quote_name(field.name)}"
        low, high, nulls = change(field, f"{here}.min_value", f"{here}.max_value", f"{here}.null_count")
        measures = f"'min_value', {low}, 'max_value', {high}, 'null_count', {nulls}"
        fields.append(f"{quote_string(field.name)}, named_struct({measures})")
    return stats.withColumn("columns", f.expr(f"named_struct({', '.join(fields)})"))


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
