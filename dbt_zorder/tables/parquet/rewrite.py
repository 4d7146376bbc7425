"""Rebuild a table from its own rows: when that is due after an append, or when a user asks for it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.curves import curve_of
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.spark.columns import case_sensitive, quote_column, resolve_all
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import load_stats
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.parquet.buckets.bucket_number import is_split_wanted, with_table_buckets
from dbt_zorder.tables.parquet.buckets.bucket_split import session_for_split
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.changed_files import check_same_files
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell_of
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.ownership import recover_own_journal
from dbt_zorder.tables.parquet.retention.whole_versions import check_there, list_whole
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.parquet.state import ParquetState, read_state
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import BuildReport, OptimizeReport
from dbt_zorder.tables.rewrite_policy import BOUND
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import read_marker, version_of

_LOG = logging.getLogger("dbt_zorder")


_ALL_VERSIONS = 1_000_000


def optimize(spark: SparkSession, request: BuildRequest, *, dry_run: bool) -> OptimizeReport:
    """Rebuild a z-ordered table from its own rows, or report what that would do.

    If the settings differ from the table in a multiple of its buckets alone, and its files overlap little, they are
    split in place of that.

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
        schema = spark.table(request.table.sql).schema
        state = read_state(spark, info.location, schema, request.spec)
    except Exception as exc:
        check_there(spark, request.table, info.location, exc)
        msg = f"{request.table} has no stats that can be read; make them by zorder_rebuild_stats first."
        raise ZorderError(msg) from exc
    sensitive = case_sensitive(spark)
    used = with_table_buckets(info, request, schema, sensitive=sensitive)
    found = state.overlap(used.placing)
    buckets = None if request.hash_index is None else request.hash_index.buckets
    if (
        buckets
        and is_split_wanted(request, used)
        and found.ratio <= BOUND
        and _keeps_layout(state, request, schema, sensitive)
    ):
        planned = OptimizeReport.of_split(request.table, found, buckets, buckets // info.bucket_count)
        return planned if dry_run else planned.done(split(spark, request, info))
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
    return _build_again(spark, spark, _as_in_catalog(request, info), info)


def split(spark: SparkSession, request: BuildRequest, info: TableInfo | None = None) -> BuildReport:
    """Split the files of a table of dbt-zorder's by the more buckets of a request; see ``bucket_split``.

    A table without a saved layout is rebuilt, as is any in a session that cannot have a sibling.

    Args:
        spark: the session.
        request: settings of the table, with a multiple of its number of buckets.
        info: current catalog description of the table, if just read.

    Raises:
        BuildError: ``build`` raised it, or files were added or removed meanwhile.
    """
    info = info or own_table(spark, request.table)
    assert request.hash_index is not None
    assert request.hash_index.buckets is not None
    spark.catalog.refreshTable(request.table.sql)
    state = ParquetState(info.location, read_tree(spark, info.location, spark.table(request.table.sql).schema))
    session = session_for_split(spark, request.hash_index.buckets // info.bucket_count)
    if state.layout is None or session is None:
        return rewrite(spark, request, info)
    kept = _as_in_catalog(request, info)
    kept = replace(kept, spec=replace(kept.spec, by=[key.column.sql for key in state.layout.keys], weights=None))
    return _build_again(spark, session, kept, info, state)


def _build_again(
    spark: SparkSession, reader: SparkSession, request: BuildRequest, info: TableInfo, state: ParquetState | None = None
) -> BuildReport:
    """Build a version from the table's own rows; give up if files were added or removed meanwhile.

    Args:
        spark: the session.
        reader: the session that reads the rows.
        request: settings of the new version.
        info: current catalog description of the table.
        state: state of the table if its files are split, see ``build``.
    """
    before = list_whole(spark, request.table, info.location)
    spark.catalog.refreshTable(request.table.sql)
    return build(
        spark,
        reader.table(request.table.sql),
        request,
        guard=lambda: check_same_files(spark, info.location, before, str(request.table)),
        info=info,
        split=state,
    )


def _as_in_catalog(request: BuildRequest, info: TableInfo) -> BuildRequest:
    """Return a request with the partitions and comments of the catalog, which stay, whatever the model says now."""
    return replace(
        request,
        spec=replace(request.spec, partition_by=list(info.partition_columns)),
        comment=info.comment,
        column_comments=info.column_comments,
    )


def _keeps_layout(state: ParquetState, request: BuildRequest, schema: StructType, sensitive: bool) -> bool:
    """Return whether a model clusters rows by the columns and the curve of the version."""
    layout, spec = state.layout, request.spec
    if layout is None or resolve_all(spec.by, schema, sensitive=sensitive) != [key.column for key in layout.keys]:
        return False
    curve = curve_of(spec.curve, spec.encoding, len(layout.keys))
    if curve is None or layout.curve is None:
        return curve is layout.curve
    return (curve.curve, curve.encoding) == (layout.curve.curve, layout.curve.encoding)


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
        if done == "optimized" and info is not None and info.provider == "parquet":
            msg += " Or name the columns to cluster it by: zorder_by."
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
