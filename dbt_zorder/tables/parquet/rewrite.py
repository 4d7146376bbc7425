"""Rebuild a table from its own rows: when that is due after an append, or when a user asks for it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.spark.columns import quote_column
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import load_stats
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.changed_files import check_same_files
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell_of
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.ownership import recover_own_journal
from dbt_zorder.tables.parquet.retention.whole_versions import check_there, list_whole
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.parquet.state import measure
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import BuildReport, OptimizeReport
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import read_marker, version_of

_LOG = logging.getLogger("dbt_zorder")


_ALL_VERSIONS = 1_000_000


def optimize(spark: SparkSession, request: BuildRequest, *, dry_run: bool) -> OptimizeReport:
    """Rebuild a z-ordered table from its own rows, or report what that would do.

    Args:
        spark: the session.
        request: the model's settings, or those of ``request_from_marker``.
        dry_run: change nothing.

    Raises:
        ZorderError: the table is not one of dbt-zorder's, or has no stats.
        BuildError: ``build`` raised it.
    """
    info = check_own(request.table, describe(spark, request.table) if dry_run else recover(spark, request.table))
    try:
        found = measure(spark, request.table, info, request.placing)
    except Exception as exc:
        check_there(spark, request.table, info.location, exc)
        msg = f"{request.table} has no stats that can be read; make them by zorder_rebuild_stats first."
        raise ZorderError(msg) from exc
    report = OptimizeReport.of(request.table, found)
    return report if dry_run else report.done(rewrite(spark, request, info))


def rewrite(spark: SparkSession, request: BuildRequest, info: TableInfo | None = None) -> BuildReport:
    """Rebuild a table of dbt-zorder's from its own rows; give up if other runs append meanwhile.

    Args:
        spark: the session.
        request: settings of the table.
        info: current catalog description of the table, if just read.

    Raises:
        BuildError: ``build`` raised it, or files were added or removed meanwhile.
    """
    info = info or own_table(spark, request.table)
    before = list_whole(spark, request.table, info.location)
    spark.catalog.refreshTable(request.table.sql)
    # the catalog's partitions and comments stay, whatever the model says now
    kept = replace(
        request,
        spec=replace(request.spec, partition_by=list(info.partition_columns)),
        comment=info.comment,
        column_comments={name: comment for name, _, comment in info.columns if comment},
    )
    return build(
        spark,
        spark.table(request.table.sql),
        kept,
        guard=lambda: check_same_files(spark, info.location, before, str(request.table)),
        info=info,
    )


def recover(spark: SparkSession, table: TableName, info: TableInfo | None = None) -> TableInfo | None:
    """Complete what a failed run left in a table's journal or swap; return the table's catalog description.

    Tables of another origin have no journal.

    Args:
        spark: the session.
        table: name of the table.
        info: current catalog description of the table, if just read.

    Raises:
        ConfigError: it is partitioned, and this session would look for its partitions in the catalog.
    """
    if info is None:
        restore_if_interrupted(spark, table)
    info = info or describe(spark, table)
    let_folders_tell_of(spark, info)
    if info is not None and version_of(info.location) and has_client(spark):
        completed, _ = recover_own_journal(spark, table, info.location)
        if completed:
            spark.catalog.refreshTable(table.sql)
            # the session may have listed the stats when they were registered
            invalidate_entry(spark, table.schema, stats_table(table).identifier)
    return info


def own_table(spark: SparkSession, table: TableName, done: str = "optimized") -> TableInfo:
    """Return the catalog description of a table that is served from one of dbt-zorder's versions.

    Args:
        spark: the session.
        table: name of the table.
        done: participle for the message, such as ``optimized``.

    Raises:
        ZorderError: the table does not exist, or is not one of dbt-zorder's.
    """
    return check_own(table, describe(spark, table), done)


def check_own(table: TableName, info: TableInfo | None, done: str = "optimized") -> TableInfo:
    """Return ``info`` if its table is served from one of dbt-zorder's versions; see ``own_table``."""
    if info is None or not version_of(info.location):
        state = "does not exist" if info is None else "is not served from a version of dbt-zorder"
        if info is not None and info.provider in FORMATS:
            state = f"is {info.provider}, which has versions and commands of its own"
        msg = f"{table} {state}; only a table that was built with zorder_by can be {done}."
        raise ZorderError(msg)
    return info


def request_from_marker(spark: SparkSession, table: TableName) -> BuildRequest:
    """Return a request that builds a table without a model as its current version was built.

    Raises:
        ZorderError: the table is not one of dbt-zorder's, or its marker cannot be read.
    """
    info = own_table(spark, table)
    marker = read_marker(spark, info.location)
    if marker is None:
        list_whole(spark, table, info.location)
        msg = f"The marker of {table}'s version cannot be read, and it alone says zorder_by: name the model instead."
        raise ZorderError(msg)
    schema = spark.table(table.sql).schema
    tree = read_tree(spark, info.location, schema)
    curve = tree.layout.curve if tree is not None and tree.layout is not None else None
    spec = LayoutSpec(by=marker.zorder_by, partition_by=list(info.partition_columns))
    if curve is not None:
        spec = replace(spec, curve=curve.curve, encoding=curve.encoding)
    stats_columns: list[str] = []
    with contextlib.suppress(Exception):  # without stats there are only the clustering columns
        stats_columns = [
            quote_column(name, schema) for name in columns_type(load_stats(spark, info.location).schema).names
        ]
    return BuildRequest(
        table,
        spec,
        hash_index=HashIndex.of_names(marker.bucket_by, marker.buckets),
        stats_columns=stats_columns,
        properties=own_properties(spark, table),
        keep_versions=_ALL_VERSIONS,  # the model's own number is not available here
        location_root=info.location.rstrip("/").rsplit("/", 2)[0],
    )
