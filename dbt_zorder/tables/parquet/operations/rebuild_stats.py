"""Collect stats for a Parquet table of another writer, or recollect those of a z-ordered table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.columns import case_sensitive, quote_column, resolve_all
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.collect import collect
from dbt_zorder.stats.column_case import without_misspelled
from dbt_zorder.stats.portability import widened
from dbt_zorder.stats.schema import STATS_SUFFIX, columns_type
from dbt_zorder.stats.store import load_stats, write_stats
from dbt_zorder.tables.parquet.journal import ready_entries
from dbt_zorder.tables.parquet.retention.ownership import served_owner
from dbt_zorder.tables.parquet.retention.whole_versions import list_whole
from dbt_zorder.tables.parquet.rewrite import recover
from dbt_zorder.tables.parquet.stats_view import publish_stats
from dbt_zorder.tables.reserved import check_free
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import version_of


def rebuild_stats(spark: SparkSession, table: TableName, columns: Sequence[str] = ()) -> int:
    """Collect the stats of a table's current files, write them beside the files, and register their relation.

    During the write, and if it fails, the table has no stats and is read in full. Files that are added later have no
    stats and are always read.

    Args:
        spark: the session.
        table: name of any Parquet table that has a folder of its own.
        columns: columns to keep stats of; by default those of the existing stats.

    Returns:
        The number of files.

    Raises:
        ZorderError: the table does not exist, is not Parquet, or is served from another table's version; no columns are
            optional and there are no stats; or the session is set to skip unreadable files.
        ColumnError: a column is missing, ambiguous or optional twice.
    """
    info = describe(spark, table)
    if info is None or info.provider != "parquet" or not info.location:
        kind = "does not exist" if info is None else f"is {info.provider or info.kind.lower()}"
        msg = f"Stats are kept of Parquet tables only, and {table} {kind}."
        raise ZorderError(msg)
    restore_if_interrupted(spark, table)
    check_free(spark, table, STATS_SUFFIX)
    recover(spark, table, info)
    owner = served_owner(spark, table, info.location) if version_of(info.location) and has_client(spark) else None
    if owner is not None and owner.marker is not None and owner.refused:
        msg = f"{table} is served from {owner.location}, which {owner.refused}: its stats belong to that table."
        raise ZorderError(msg)
    if version_of(info.location) and ready_entries(spark, info.location):
        msg = f"Another run is moving a batch into {table}; its stats come with it. Run this again after it."
        raise ZorderError(msg)
    list_whole(spark, table, info.location)
    spark.catalog.refreshTable(table.sql)  # the session may have cached an older listing
    if not columns:
        columns = _known_columns(spark, table, info.location)
    version = version_of(info.location)
    stats = collect(spark, table.sql, columns, version)
    # another engine may have added files, also to a version of dbt-zorder's
    schema = spark.table(table.sql).schema
    named = resolve_all(columns, schema, sensitive=case_sensitive(spark))
    stats = without_misspelled(widened(stats), table.sql, named)
    # Cached, because the existing stats may be unreadable while they are replaced. One partition, because a cached
    # result has as many as a shuffle, 200 by default; a task for each takes longer than a small table.
    rows = stats.coalesce(1).cache()
    try:
        files = rows.count()
        write_stats(rows, info.location)
    finally:
        rows.unpersist()
    now = describe(spark, table)  # read again: another run may have swapped in a version meanwhile
    if now is None or now.location != info.location:
        msg = f"Another run changed {table} while its stats were collected; that run's stats are kept."
        raise ZorderError(msg)
    publish_stats(spark, table, info.location)
    return files


def _known_columns(spark: SparkSession, table: TableName, location: str) -> list[str]:
    try:
        names = columns_type(load_stats(spark, location).schema).names
    except Exception as exc:
        msg = f"{table} has no stats yet: name the columns to keep them of."
        raise ZorderError(msg) from exc
    schema = spark.table(table.sql).schema
    # the caller reports names that are missing or ambiguous
    return [quote_column(name, schema) for name in names]
