"""Compact and cluster any Parquet table of the catalog: rewrite it into a version of dbt-zorder's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.stats.summary import absent
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.diagnose import measure_health
from dbt_zorder.tables.health import TableHealth
from dbt_zorder.tables.parquet.adopt import adopt, adoption_request
from dbt_zorder.tables.parquet.rewrite import recover, request_from_marker, rewrite
from dbt_zorder.tables.report import OptimizeReport
from dbt_zorder.tables.reserved import check_name
from dbt_zorder.tables.version import version_of


def compact(
    spark: SparkSession, table: TableName, by: Sequence[str], file_size: str | int = "auto", *, dry_run: bool
) -> OptimizeReport:
    """Rewrite a Parquet table that no model with ``zorder_by`` builds, or report what that would do.

    Readers see the old table until the new one is complete. What the table was served from before stays.

    Args:
        spark: the session.
        table: name of the table: of another writer's, or of one that this function has rewritten before. The latter is
            rewritten again only if it has other columns, or if a rewrite would gain.
        by: columns to cluster by.
        file_size: ``auto``, bytes, or a text like ``64MB``.
        dry_run: change nothing.

    Raises:
        ZorderError: the table does not exist, is a view, or has another format.
        ColumnError, ConfigError: a column or a setting is not allowed; or the table has what a rewrite would lose.
        BuildError: another run changed the table meanwhile; the table is unchanged.
    """
    check_name(table)
    info = _check_parquet(table, recover(spark, table))
    spec = LayoutSpec(by=list(by), file_size=file_size, partition_by=list(info.partition_columns))
    health = measure_health(spark, table, spec.by, spec)
    report = _planned(health)
    if not version_of(info.location):
        request = adoption_request(spark, table, info, spec)
        if dry_run:
            return report
        return replace(report.done(adopt(spark, request, info)), left=info.location)
    request = request_from_marker(spark, table)
    if list(health.columns) == _names(request.spec.by) and not health.gains:
        return replace(report, is_due=False)
    spec = replace(request.spec, by=spec.by, file_size=file_size)
    return report if dry_run else report.done(rewrite(spark, replace(request, spec=spec), info))


def _check_parquet(table: TableName, info: TableInfo | None) -> TableInfo:
    if info is None:
        raise ZorderError(absent(table))
    if info.provider == "parquet":
        return info
    hint = " Give its model a zorder_by, or use the format's own command." if info.provider in FORMATS else ""
    msg = f"zorder_optimize: {table} is {info.kind_text}, and zorder_by is for tables in Parquet.{hint}"
    raise ZorderError(msg)


def _names(by: Sequence[str]) -> list[str]:
    return [name.replace("`", "") for name in by]


def _planned(health: TableHealth) -> OptimizeReport:
    return OptimizeReport(
        health.table,
        health.files,
        health.bytes,
        health.files_after,
        {name: one.depth for name, one in health.columns.items()},
        {name: one.after for name, one in health.columns.items()},
    )
