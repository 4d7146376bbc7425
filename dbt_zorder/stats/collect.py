"""Statistics of every data file, by one Spark aggregate that reads only the columns asked for.

An aggregate over the files, not over the query that filled them: a query that is not deterministic gives other rows
when it runs again. And not the Parquet footers: they lack bounds for INT96 timestamps and long strings, and what they
say of NaN depends on the writer.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.columns import ResolvedColumn, case_sensitive, resolve_all
from dbt_zorder.errors import ColumnError
from dbt_zorder.sql import glob_escape


def collect(spark: SparkSession, table: str, columns: Sequence[str], version: str = "") -> DataFrame:
    """Return the statistics of each live file of a Parquet table, in the shape of ``stats_schema``.

    Args:
        table: as SQL would name it, ``db.t``.
        columns: top-level columns, and struct leaves by dots.
        version: what the rows say of the table's version.

    Raises:
        ColumnError: a column is unknown, ambiguous or named twice.
    """
    df = spark.table(table)
    return _by_file(df, resolve_all(columns, df.schema, sensitive=case_sensitive(spark)), version)


def collect_path(
    spark: SparkSession, path: str, schema: StructType, columns: Sequence[ResolvedColumn], version: str
) -> DataFrame:
    """Return the statistics of each file below ``path``, a folder of Parquet files of one schema."""
    df = spark.read.schema(schema).parquet(glob_escape(path))
    return _by_file(df, columns, version)


def _by_file(df: DataFrame, columns: Sequence[ResolvedColumn], version: str) -> DataFrame:
    metadata = _metadata(df)
    values = [f.expr(column.sql).alias(f"c{number}") for number, column in enumerate(columns)]
    rows = df.select(
        metadata.getField("file_path").alias("file_path"), metadata.getField("file_size").alias("file_size"), *values
    )
    measures: list[Column] = [f.count(f.lit(1)).alias("row_count")]
    for number in range(len(columns)):
        value = f.col(f"c{number}")
        measures += [
            f.min(value).alias(f"min{number}"),
            f.max(value).alias(f"max{number}"),
            f.count_if(value.isNull()).alias(f"nulls{number}"),
        ]
    by_file = rows.groupBy("file_path", "file_size").agg(*measures)
    # named by aliases, not by a cast to stats_schema: what a query calls NOT NULL inside a struct is nullable in a file
    per_column = [
        f.struct(
            f.col(f"min{number}").alias("min_value"),
            f.col(f"max{number}").alias("max_value"),
            f.col(f"nulls{number}").alias("null_count"),
        ).alias(column.name)
        for number, column in enumerate(columns)
    ]
    return by_file.select(
        "file_path", "file_size", "row_count", f.lit(version).alias("version"), f.struct(*per_column).alias("columns")
    )


def _metadata(df: DataFrame) -> Column:
    if all(name.lower() != "_metadata" for name in df.columns):
        return f.col("_metadata")
    if not hasattr(df, "metadataColumn"):
        msg = "A column named _metadata hides Spark's own, and PySpark 3.5 has no way around it: rename the column."
        raise ColumnError(msg)
    return df.metadataColumn("_metadata")
