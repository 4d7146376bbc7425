"""Compute statistics of every data file: from footers if those are exact, otherwise by a Spark aggregate.

Footers serve only a folder that was just written. For files that others may have written, Spark reads the rows. The
query that filled the files is never read again: if it is not deterministic, its next run returns other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.spark.char_types import reader_schema, text_type
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive, fold_case, resolve_all
from dbt_zorder.spark.conf import is_on
from dbt_zorder.spark.ordering import is_ordered
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.footers import footer_stats
from dbt_zorder.stats.portability import FIELD_IDS, uses_field_ids, without_moved

_IGNORE_CORRUPT = "spark.sql.files.ignoreCorruptFiles"


def collect(spark: SparkSession, table: str, columns: Sequence[str], version: str = "") -> DataFrame:
    """Return the statistics of each live file of a Parquet table, in the shape of ``stats_schema``.

    Examples:
        >>> collect_stats(spark, "shop.orders", ["order_id"]).count()
        4

    Args:
        table: the name of the table in SQL, such as ``db.t``.
        columns: the top-level columns, and struct leaves by dotted names.
        version: the value of the column ``version``.

    Raises:
        ColumnError: a column is unknown, ambiguous or named twice.
        ZorderError: this session ignores corrupt files and may miss rows, or matches columns by field id, unlike other
            sessions.
    """
    if is_on(spark, _IGNORE_CORRUPT):
        msg = (
            f"The stats of {table} cannot be collected while {_IGNORE_CORRUPT} is on: those of a damaged file would be "
            "of the rows before the damage alone. Set it to false in this session."
        )
        raise ZorderError(msg)
    df = spark.table(table)
    if uses_field_ids(spark, df.schema):
        msg = (
            f"The stats of {table} cannot be collected while {FIELD_IDS} is on: its columns have numbers, by which "
            "other sessions would not find them. Set it to false in this session."
        )
        raise ZorderError(msg)
    return without_moved(row_stats(df, resolve_all(columns, df.schema, sensitive=case_sensitive(spark)), version))


def collect_path(
    spark: SparkSession,
    path: str,
    schema: StructType,
    columns: Sequence[ResolvedColumn],
    version: str,
    hidden: str = "",
) -> DataFrame | LocalStats:
    """Return the statistics of each file below ``path``, a folder that this session wrote with one schema.

    Args:
        spark: the session.
        path: the folder.
        schema: the schema of the files.
        columns: the columns with statistics.
        version: the value of the column ``version``.
        hidden: a part of the files' paths that becomes a slash when the files move to their final folder.
    """
    exact = footer_stats(spark, path, columns, version)
    if exact is not None:
        return exact.moved(hidden) if hidden else exact
    df = spark.read.schema(reader_schema(schema)).parquet(glob_escape(path))
    stats = row_stats(df, columns, version)
    return stats.withColumn("file_path", f.replace("file_path", f.lit(hidden), f.lit("/"))) if hidden else stats


def row_stats(df: DataFrame, columns: Sequence[ResolvedColumn], version: str) -> DataFrame:
    """Return the statistics of each file in a DataFrame by reading all of its rows."""
    metadata = file_metadata(df)
    # Spark cannot read back a bound of type VARCHAR
    kinds = [text_type(column.data_type) for column in columns]
    values = [
        (f.expr(column.sql) if kind == column.data_type else f.expr(column.sql).cast(kind)).alias(f"c{number}")
        for number, (column, kind) in enumerate(zip(columns, kinds, strict=True))
    ]
    rows = df.select(
        metadata.getField("file_path").alias("file_path"), metadata.getField("file_size").alias("file_size"), *values
    )
    measures: list[Column] = [f.count(f.lit(1)).alias("row_count")]
    for number, kind in enumerate(kinds):
        value = f.col(f"c{number}")
        nothing = f.lit(None).cast(kind)
        # a z-order column may be unsortable, and is then keyed by a prefix: its bounds exclude no file
        ordered = is_ordered(kind)
        measures += [
            (f.min(value) if ordered else nothing).alias(f"min{number}"),
            (f.max(value) if ordered else nothing).alias(f"max{number}"),
            f.count_if(value.isNull()).alias(f"nulls{number}"),
        ]
    by_file = rows.groupBy("file_path", "file_size").agg(*measures)
    # aliases, not a cast to stats_schema: a field that is NOT NULL in a query's struct is nullable in a file
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


def file_metadata(df: DataFrame) -> Column:
    """Return Spark's hidden column with the file of each row, also where a column of the table has its name.

    Raises:
        ColumnError: a column has its name, and this PySpark has no other way to it.
    """
    sensitive = case_sensitive(df.sparkSession)
    if all(fold_case(name, sensitive=sensitive) != "_metadata" for name in df.columns):
        return f.col("_metadata")
    if not hasattr(df, "metadataColumn"):
        msg = "A column named _metadata hides Spark's own, and PySpark 3.5 has no way around it: rename the column."
        raise ColumnError(msg)
    return df.metadataColumn("_metadata")
