"""Rows and requests that the tests of formats share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.summary import Summary
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.lakehouse import build as build_module
from dbt_zorder.tables.lakehouse import state as state_module
from dbt_zorder.tables.lakehouse.state import LakehouseState
from dbt_zorder.tables.registry import LAKEHOUSE, lakehouse_table
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport
from tests.support import same_rows

HERE, BY_SPARK = "written here", "by Spark"
"""Who wrote the files of a table."""


def failing(error: Exception) -> Any:
    """Return what fails, whatever it is given."""

    def fail(*_: object) -> None:
        raise error

    return fail


def same(found: DataFrame, expected: DataFrame) -> bool:
    """Compare rows whose column ``m`` is a map."""
    comparable = [df.withColumn("m", f.expr("array_sort(map_entries(m))")) for df in (found, expected)]
    return same_rows(*comparable)


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Return rows whose ``a`` and ``s`` have many values in no order."""
    return spark.range(first, end).selectExpr(
        "id",
        "pmod(hash(id), 5000) AS a",
        "concat('k', lpad(pmod(hash(id, 7), 5000), 4, '0')) AS s",
        "CAST(id % 3 AS INT) AS p",
        "named_struct('x', id % 50, 'y', 'z') AS st",
    )


def request(
    table: TableName,
    file_format: str,
    by: Sequence[str] = ("a", "s"),
    partition_by: Sequence[str] = (),
    files: int | None = 16,
    properties: Mapping[str, str] | None = None,
    location_root: str | None = None,
) -> BuildRequest:
    """What to build of such rows."""
    spec = LayoutSpec(by=by, files=files, partition_by=partition_by)
    return BuildRequest(table, spec, properties=properties or {}, location_root=location_root, file_format=file_format)


def build(spark: SparkSession, df: DataFrame, request: BuildRequest, before: str | None = None) -> BuildReport:
    table = lakehouse_table(spark, request)
    return build_module.build(spark, table.form, df, request, table.drop, before=before)


def increment(
    spark: SparkSession, query: Callable[[], DataFrame], request: BuildRequest, batch: Batch, how: str
) -> IncrementReport:
    return lakehouse_table(spark, request).increment(query, request, batch, how)


def merge(spark: SparkSession, sql: str, request: BuildRequest, batch: Batch, how: str, *more: Any) -> IncrementReport:
    return lakehouse_table(spark, request).merge(sql, request, batch, how, *more)


def rewrite(spark: SparkSession, request: BuildRequest, how: str = "auto") -> BuildReport:
    return lakehouse_table(spark, request).rewrite(request, how)


def optimize(spark: SparkSession, request: BuildRequest, how: str, *, dry_run: bool) -> OptimizeReport:
    return lakehouse_table(spark, request).optimize(request, how, dry_run=dry_run)


def read_state(spark: SparkSession, request: BuildRequest, *more: Any) -> LakehouseState:
    return state_module.read_state(spark, lakehouse_table(spark, request).form, request, *more)


def read_state_or_sizes(spark: SparkSession, request: BuildRequest) -> LakehouseState:
    return state_module.read_state_or_sizes(spark, lakehouse_table(spark, request).form, request)


def state_after_append(spark: SparkSession, request: BuildRequest, state: LakehouseState) -> LakehouseState:
    return state_module.state_after_append(spark, lakehouse_table(spark, request).form, request, state)


def last_whole_layout(spark: SparkSession, file_format: str, table: TableName) -> Summary:
    return LAKEHOUSE[file_format].form.last_whole_layout(state_of(spark, file_format, table))
