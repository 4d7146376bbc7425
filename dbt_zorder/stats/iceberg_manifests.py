"""The statistics of an Iceberg table: metrics of each file in its manifests, through the metadata table ``files``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.catalog import TableName
from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.ddl import type_ddl
from dbt_zorder.jvm import class_named, jvm_of
from dbt_zorder.sql import quote_name


def iceberg_stats(spark: SparkSession, table: TableName, columns: Sequence[ResolvedColumn]) -> DataFrame:
    """Return the data files of the current snapshot of a table; see ``format_stats``."""
    files = spark.table(f"{table.sql}.files").where("content = 0")
    # the metadata table has metrics of columns that some file has metrics of; all their names are a long way to Python
    kept: Any = files._jdf.schema().apply("readable_metrics").dataType()
    return files.select(
        "file_path",
        f.col("file_size_in_bytes").alias("file_size"),
        f.col("record_count").alias("row_count"),
        f.lit(iceberg_version(spark, table)).alias("version"),
        f.struct(
            *(
                f.expr(_bounds(column, kept.getFieldIndex(column.name).isDefined())).alias(column.name)
                for column in columns
            )
        ).alias("columns"),
    )


def iceberg_version(spark: SparkSession, table: TableName) -> str:
    """Return the id of the current snapshot of a table, an empty string if it has none."""
    snapshot = iceberg_table(spark, table).currentSnapshot()
    return "" if snapshot is None else str(snapshot.snapshotId())


def iceberg_table(spark: SparkSession, table: TableName) -> Any:
    """Return a table as Iceberg's own library has it, by its newest metadata.

    What it says costs a call, where a query of the metadata tables costs a job.
    """
    library = class_named(jvm_of(spark), "org.apache.iceberg.spark.Spark3Util")
    found = library.loadIcebergTable(spark._jsparkSession, table.sql)
    found.refresh()
    return found


def _bounds(column: ResolvedColumn, is_kept: bool) -> str:
    kind = type_ddl(column.data_type)
    metrics = f"readable_metrics.{quote_name(column.name)}"
    low, high, nulls = (
        f"CAST({metrics}.{side} AS {as_type})" if is_kept else f"CAST(NULL AS {as_type})"
        for side, as_type in (("lower_bound", kind), ("upper_bound", kind), ("null_value_count", "bigint"))
    )
    return f"named_struct('min_value', {low}, 'max_value', {high}, 'null_count', {nulls})"
