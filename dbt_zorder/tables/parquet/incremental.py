"""Run an incremental model over an existing table: add rows in place if possible, else build a new version."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.catalog_entry import change_entry, invalidate_entry
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import case_sensitive, resolve, resolve_all
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.batch import (
    Batch,
    after_batch,
    check_parts,
    describe_existing,
    naming_left_out,
    rows_after,
    same_partitions,
    schemas,
)
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.buckets.bucket_files import has_same_buckets
from dbt_zorder.tables.parquet.buckets.bucket_number import is_split_wanted, with_table_buckets
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.changed_files import check_unchanged
from dbt_zorder.tables.parquet.retention.ownership import Owner, served_owner, stamped
from dbt_zorder.tables.parquet.retention.whole_versions import list_whole
from dbt_zorder.tables.parquet.rewrite import recover, rewrite, split
from dbt_zorder.tables.parquet.state import ParquetState, measure, read_state_or_layout
from dbt_zorder.tables.report import AppendReport, BuildReport, IncrementReport
from dbt_zorder.tables.rewrite_policy import Overlap
from dbt_zorder.tables.schema_change import add_columns_sql, conform, keeps
from dbt_zorder.tables.version import version_of, write_marker

_LOG = logging.getLogger("dbt_zorder")


def begin(spark: SparkSession, table: TableName, info: TableInfo | None = None) -> Mapping[str, int] | None:
    """Complete the work of a failed run, and return the table's files; None if it is not a Parquet table.

    Call it before a batch's query is analysed, which may read the table and must see all of it. A table that is not
    z-ordered yet is listed too. When it is replaced, its folder is deleted with any rows added meanwhile.

    Args:
        spark: the session.
        table: name of the table.
        info: current catalog description of the table, if just read.
    """
    info = recover(spark, table, info)
    found = list_whole(spark, table, info.location) if info is not None and info.provider == "parquet" else None
    if info is not None and not info.is_view:
        # the session may have cached an older listing of the table
        invalidate_entry(spark, table.schema, table.identifier)
    return found


def increment(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    batch: Batch,
    before: Mapping[str, int] | None = None,
) -> IncrementReport:
    """Add a query's rows to a table, as an incremental model does.

    Rows are added in place, through the journal, if the table is z-ordered and keeps its columns and partitions. If the
    model asks for a multiple of the table's buckets, the table's files are split after that. Otherwise a new version is
    built of the existing rows and the batch, and swapped in by one catalog call.

    Args:
        spark: the session.
        df: the query.
        request: the model's settings.
        batch: how the rows are added.
        before: return value of ``begin``.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the query's columns.
        BuildError: ``build`` or ``append`` raised it, or the table no longer exists.
    """
    df = as_text(df)
    info = describe_existing(spark, request.table)  # read again: the analysis of the query may have been long
    partitioned = bool(request.spec.partition_by)
    if batch.overwrite and not partitioned:
        rows = conform(df, schemas(spark, df, request, batch)[1])
        return IncrementReport.of_build(build(spark, rows, request, info=info))
    check_parquet(request.table, info)
    existing, schema = schemas(spark, df, request, batch)
    in_place = bool(version_of(info.location)) and has_client(spark) and keeps(existing, schema)
    rows = conform(df, schema)
    owner = served_owner(spark, request.table, info.location) if in_place else None
    with naming_left_out(df, schema, request, batch):
        check_parts(spark, info, request, schema, batch)
        asked, request = request, with_table_buckets(info, request, schema, sensitive=case_sensitive(spark))
        # files moved into a version of another table or catalog would be added to that table as well
        is_same = same_partitions(spark, info, request, schema) and has_same_buckets(spark, info, request, schema)
        if owner is None or not is_same or owner.refused:
            return IncrementReport.of_build(_build_with(spark, rows, schema, asked, batch, before, info))
        state = read_state_or_layout(spark, info.location, schema, request.spec)
        splits = is_split_wanted(asked, request)
        # a table without rows has no order to follow: dbt run --empty, or a source that had none yet
        is_empty = state.files is not None and not state.files.num_rows
        if is_empty or (splits and (state.files is None or state.layout is None)):
            return IncrementReport.of_build(_build_with(spark, rows, schema, asked, batch, before, info))
        # the weights belong to the model's columns, which may differ from the table's
        spec = replace(request.spec, by=version_columns(spark, state, request, schema), weights=None)
        check(rows, replace(request, spec=spec))
    _say_of_stats(spark, state, request, schema)
    added = schema.fields[len(existing.fields) :]
    if added:
        sensitive = case_sensitive(spark)
        comments = {column.name: request.comment_of(column.name, sensitive=sensitive) for column in added}
        statement = add_columns_sql(request.table.sql, added, comments)
        change_entry(spark, request.table.schema, request.table.identifier, statement)
        rows = conform(df, spark.table(request.table.sql).schema)
    _renew_marker(spark, owner, spark.table(request.table.sql).schema if added else existing)
    report = append(spark, rows, request, overwrite=batch.overwrite, before=before, info=info, state=state)
    return after_batch(
        report,
        request.table,
        version_of(info.location),  # unchanged, or the append would have failed
        lambda: _measured(spark, info, request, report),
        (lambda: rewrite(spark, asked)) if batch.may_rewrite else None,
        (lambda: split(spark, asked)) if splits else None,
    )


def check_parquet(table: TableName, info: TableInfo) -> None:
    """Raise if a table is not in Parquet.

    Raises:
        ZorderError: it has another format.
    """
    if info.provider != "parquet":
        keep = f"set file_format: {info.provider} to keep it, or " if info.provider in FORMATS else ""
        msg = (
            f"{table} is in {info.provider}, and the model's file_format is 'parquet', the default: {keep}"
            "run the model with --full-refresh to replace it."
        )
        raise ZorderError(msg)


def _build_with(
    spark: SparkSession,
    rows: DataFrame,
    schema: StructType,
    request: BuildRequest,
    batch: Batch,
    before: Mapping[str, int] | None,
    info: TableInfo,
) -> BuildReport:
    """Build a new version of the existing rows and those of a batch."""
    with rows_after(spark, rows, schema, request, batch) as state:
        guard = None if before is None else lambda: check_unchanged(spark, request.table, before)
        return build(spark, state, request, guard, info)


def _renew_marker(spark: SparkSession, owner: Owner, schema: StructType) -> None:
    """Add new columns to a version's marker, including those of a run that died; a rollback restores them.

    A marker of an earlier release also gets the fields that identify its owner.
    """
    assert owner.marker is not None
    marker = stamped(spark, owner)
    if marker.schema and _number_of_columns(marker.schema) != len(schema):
        marker = replace(marker, schema=schema.json())
    if marker != owner.marker:
        write_marker(spark, owner.location, marker, renew=True)


def _number_of_columns(schema: str) -> int | None:
    """Return the number of columns in a marker's schema, whatever their types; None if it cannot be read."""
    try:
        return len(json.loads(schema)["fields"])
    except Exception:
        return None


def _measured(spark: SparkSession, info: TableInfo, request: BuildRequest, report: AppendReport) -> Overlap:
    """Measure a table after a batch from its state in memory, or else from its stats."""
    if report.state is not None:
        return report.state.overlap(request.placing)
    return measure(spark, request.table, info, request.placing)


def _say_of_stats(spark: SparkSession, state: ParquetState, request: BuildRequest, schema: StructType) -> None:
    """Warn if the model names columns that the version has no stats of: all its stats files have the same columns."""
    sensitive = case_sensitive(spark)
    wanted = [resolve(name, schema, sensitive=sensitive).name for name in request.stats_columns]
    unknown = [name for name in wanted if name not in state.columns]
    if state.files is not None and unknown:
        _LOG.warning(
            "zorder_stats_columns of %s names %s, which the table has no stats of: they come when it is built anew "
            "(--full-refresh, zorder_optimize, or by itself when that is due)",
            request.table, ", ".join(unknown),
        )  # fmt: skip


def version_columns(spark: SparkSession, state: ParquetState, request: BuildRequest, schema: StructType) -> list[str]:
    """Return the columns that a version is clustered by; warn if the model names others now."""
    wanted = list(request.spec.by)
    tree = state.tree
    if tree is None or tree.layout is None:
        return wanted
    keys = [key.column for key in tree.layout.keys]
    if resolve_all(wanted, schema, sensitive=case_sensitive(spark)) != keys:
        _LOG.warning(
            "zorder_by of %s changed from %s to %s: what is appended stays clustered as the table is; the change "
            "is for when the table is built anew (--full-refresh, zorder_optimize, or by itself when that is due)",
            request.table, ", ".join(tree.by), ", ".join(wanted),
        )  # fmt: skip
    return [key.sql for key in keys]
