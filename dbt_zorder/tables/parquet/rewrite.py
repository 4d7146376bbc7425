"""Building a table anew from its own rows: by need after an append, or when a user asks for it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import as_written
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import known_stats
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.listing import check_same_files
from dbt_zorder.tables.parquet.ownership import recover_own_journal
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell_of
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.parquet.state import measure
from dbt_zorder.tables.parquet.whole import check_there, list_whole
from dbt_zorder.tables.report import BuildReport, OptimizeReport
from dbt_zorder.tables.two_step_swap import bring_back
from dbt_zorder.tables.version import read_marker, version_of

_LOG = logging.getLogger("dbt_zorder")


_ALL_VERSIONS = 1_000_000


def optimize(spark: SparkSession, request: BuildRequest, *, dry_run: bool) -> OptimizeReport:
    """Build a z-ordered table anew from its own rows, or tell what that would do.

    Args:
        spark: the session.
        request: settings of the model, or those of ``request_from_marker``.
        dry_run: change nothing.

    Raises:
        ZorderError: it is no table of ours, or has no stats.
        BuildError: as ``build``.
    """
    info = check_own(request.table, describe(spark, request.table) if dry_run else recover(spark, request.table))
    try:
        found = measure(spark, request.table, info, request.spec)
    except Exception as exc:
        check_there(spark, request.table, info.location, exc)
        msg = f"{request.table} has no stats that can be read; make them by zorder_rebuild_stats first."
        raise ZorderError(msg) from exc
    report = OptimizeReport.of(request.table, found)
    return report if dry_run else report.done(rewrite(spark, request, info))


def rewrite(spark: SparkSession, request: BuildRequest, info: TableInfo | None = None) -> BuildReport:
    """Build a table of ours anew from its own rows; what others append meanwhile makes it give up.

    Args:
        spark: the session.
        request: of the table.
        info: what the catalog says of it, where that was just asked.

    Raises:
        BuildError: as ``build``, and if files were added or removed meanwhile.
    """
    info = info or own_table(spark, request.table)
    before = list_whole(spark, request.table, info.location)
    spark.catalog.refreshTable(request.table.sql)
    # what the catalog says of the table stays, whatever the model has become since
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
    """Complete what a failed run has left in a table's journal and in its place; return what the catalog says of it.

    A table that is none of ours has no journal.

    Args:
        spark: the session.
        table: its name.
        info: what the catalog says of it, where that was just asked.

    Raises:
        ConfigError: it is partitioned, and this session would look for its partitions in the catalog.
    """
    if info is None:
        bring_back(spark, table)
    info = info or describe(spark, table)
    let_folders_tell_of(spark, info)
    if info is not None and version_of(info.location) and has_client(spark):
        completed, _ = recover_own_journal(spark, table, info.location)
        if completed:
            spark.catalog.refreshTable(table.sql)
    return info


def own_table(spark: SparkSession, table: TableName, done: str = "optimized") -> TableInfo:
    """Return what the catalog says of a table that is served from one of our versions.

    Args:
        spark: the session.
        table: its name.
        done: what is to be done to it, for the message.

    Raises:
        ZorderError: there is no such table, or it is none of ours.
    """
    return check_own(table, describe(spark, table), done)


def check_own(table: TableName, info: TableInfo | None, done: str = "optimized") -> TableInfo:
    """Return what the catalog says of a table, if that is served from one of our versions; see ``own_table``."""
    if info is None or not version_of(info.location):
        state = "does not exist" if info is None else "is not served from a version of dbt-zorder"
        if info is not None and info.provider in FORMATS:
            state = f"is {info.provider}, which has versions and commands of its own"
        msg = f"{table} {state}; only a table that was built with zorder_by can be {done}."
        raise ZorderError(msg)
    return info


def request_from_marker(spark: SparkSession, table: TableName) -> BuildRequest:
    """Return a request to build a table as its current version was built, for a table without a model.

    Raises:
        ZorderError: it is no table of ours, or its marker cannot be read.
    """
    info = own_table(spark, table)
    marker = read_marker(spark, info.location)
    if marker is None:
        list_whole(spark, table, info.location)
        msg = f"The marker of {table}'s version cannot be read, so its zorder_by is not known: name the model instead."
        raise ZorderError(msg)
    schema = spark.table(table.sql).schema
    tree = read_tree(spark, info.location, schema)
    curve = tree.layout.curve if tree is not None and tree.layout is not None else None
    spec = LayoutSpec(by=marker.zorder_by, partition_by=list(info.partition_columns))
    if curve is not None:
        spec = replace(spec, curve=curve.curve, encoding=curve.encoding)
    known: list[str] = []
    with contextlib.suppress(Exception):  # no stats, no columns beside the clustering ones
        known = [as_written(name, schema) for name in columns_type(known_stats(spark, info.location).schema).names]
    return BuildRequest(
        table,
        spec,
        stats_columns=known,
        properties=own_properties(spark, table),
        keep_versions=_ALL_VERSIONS,  # how many the model keeps is not known here
        location_root=info.location.rstrip("/").rsplit("/", 2)[0],
    )
