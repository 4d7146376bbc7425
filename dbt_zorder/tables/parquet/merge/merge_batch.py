"""Merge a batch into a Parquet table: a new version with the files that have a changed row, and links to the others."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.keep_result import kept
from dbt_zorder.errors import BuildError
from dbt_zorder.humanize import counted
from dbt_zorder.progress import Clock, add_seconds
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import describe
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.tables.batch import Batch, after_batch, describe_existing, naming_left_out, schemas
from dbt_zorder.tables.merge import Merge, MergeColumns, merge_columns
from dbt_zorder.tables.parquet.buckets.bucket_number import is_split_wanted, with_table_buckets
from dbt_zorder.tables.parquet.changed_files import check_unchanged
from dbt_zorder.tables.parquet.incremental import check_parquet
from dbt_zorder.tables.parquet.merge.matching import contested_keys, count_by_file, files_without_keys, match
from dbt_zorder.tables.parquet.merge.next_rows import Inserts, find_inserts
from dbt_zorder.tables.parquet.merge.row_changes import RowChanges, TableFiles
from dbt_zorder.tables.parquet.merge.source import numbered_rows
from dbt_zorder.tables.parquet.rewrite import rewrite, split
from dbt_zorder.tables.parquet.state import measure
from dbt_zorder.tables.parquet.stats_view import renew_stats
from dbt_zorder.tables.report import AppendReport, BuildReport, IncrementReport, MergeReport
from dbt_zorder.tables.schema_change import conform
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")


def merge_batch(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    batch: Batch,
    merge: Merge,
    before: Mapping[str, int] | None = None,
) -> IncrementReport:
    """Merge the rows of a query into a table by its unique key.

    The batch is matched once. What was matched is what is written, so conditions on the clock cannot differ between the
    two. Only files with a changed row are written anew; the new version shares the others with the one before. Where
    versions cannot share files, or most of them change, all rows are written.

    Args:
        spark: the session.
        df: the query.
        request: the model's settings.
        batch: how the batch goes into its table.
        merge: how rows are matched, and what a match does.
        before: return value of ``begin``.

    Raises:
        ColumnError, ConfigError: the settings do not fit the query; nothing was read or written.
        ZorderError: the table has another format.
        SchemaChangeError: ``on_schema_change`` does not allow the query's columns.
        BuildError: two rows of the batch match one row, another run changed the table meanwhile, or ``build`` raised
            it; the table is unchanged.
    """
    df = as_text(df)
    info = describe_existing(spark, request.table)
    check_parquet(request.table, info)
    existing, schema = schemas(spark, df, request, batch)
    rows = conform(df, schema)
    columns = merge_columns(spark, merge, df.schema, schema)
    with naming_left_out(df, schema, request, batch):
        check(rows, request)
    files = TableFiles(spark, request, info, existing, schema)
    clock = Clock()
    with numbered_rows(rows) as source:
        with clock.phase("query"):
            without = files_without_keys(spark, request.table, info, source, columns.of_same_type(existing))
            asked = [path for path, size in files.sizes.items() if without.get(path) != size]
            found = match(files.rows(asked), source, columns, merge)
        with kept(found) as pairs:
            with clock.phase("query"):
                matches, contested = count_by_file(pairs)
                if contested:
                    raise BuildError(_contested(request, columns, contested, contested_keys(pairs, source, columns)))
                added = find_inserts(source, None if merge.replaces_rows else pairs, columns)
            _warn(request, columns, added, merge)
            changes = RowChanges(pairs, columns, matches, added.rows, deletes=merge.replaces_rows)
            figures = _figures(changes, added)
            if not figures.changed and files.keeps_columns:
                renew_stats(spark, request.table, info.location)
                nothing = AppendReport(0, 0, 0, 0, clock.seconds)
                return IncrementReport(nothing, None, None, version_of(info.location), figures)
            guard = None if before is None else lambda: check_unchanged(spark, request.table, before)
            built, rewritten = files.write(changes, guard)
    figures = replace(figures, rewritten=rewritten, shared=len(files.sizes) - rewritten)
    return report_of(spark, request, batch, built, figures, clock)


def _contested(request: BuildRequest, columns: MergeColumns, contested: int, keys: str) -> str:
    names = ", ".join(key.name for key in columns.keys)
    return (
        f"{counted(contested, 'row')} of {request.table} match two rows of this run each, so the new values are "
        f"ambiguous: nothing was changed. The unique_key is {names}; among its repeated values: {keys}. Let the query "
        "return one row for each key, such as by row_number(), or use incremental_strategy 'delete+insert'."
    )


def _figures(changes: RowChanges, added: Inserts) -> MergeReport:
    matched = sum(one.rows for one in changes.matches.values())
    if changes.deletes:
        return MergeReport(added.count, updated=0, unchanged=0, deleted=changes.rows)
    return MergeReport(added.count, updated=changes.rows, unchanged=matched - changes.rows, deleted=0)


def _warn(request: BuildRequest, columns: MergeColumns, added: Inserts, merge: Merge) -> None:
    """Warn of rows that match none although a user may expect it."""
    names = ", ".join(key.name for key in columns.keys)
    if added.without_key:
        _LOG.warning(
            "%s: %s of this run have NULL in their unique_key (%s), which equals no other value: they are inserted "
            "by every run that has them",
            request.table, counted(added.without_key, "row"), names,
        )  # fmt: skip
    if added.repeated and not merge.replaces_rows:
        _LOG.warning(
            "%s: %s that this run inserts share their unique_key (%s) with another one of them, so the table has each "
            "of these keys more than once now",
            request.table, counted(added.repeated, "row"), names,
        )  # fmt: skip


def report_of(
    spark: SparkSession, request: BuildRequest, batch: Batch, built: BuildReport, figures: MergeReport, clock: Clock
) -> IncrementReport:
    """Return the report of a merge, after the rewrite that it made due."""
    seconds = add_seconds(clock.seconds, built.seconds)
    if built.written is None:
        return replace(IncrementReport.of_build(replace(built, seconds=seconds)), merged=figures)
    info = describe(spark, request.table)
    assert info is not None
    written = built.written
    used = with_table_buckets(info, request, spark.table(request.table.sql).schema, sensitive=case_sensitive(spark))
    report = after_batch(
        AppendReport(written.rows, written.files, written.bytes, figures.rewritten, seconds),
        request.table,
        built.version,
        lambda: measure(spark, request.table, info, used.placing),
        (lambda: rewrite(spark, request)) if batch.may_rewrite else None,
        (lambda: split(spark, request)) if is_split_wanted(request, used) else None,
    )
    return replace(report, merged=figures)
