"""One run of an incremental model over a table of Delta Lake or Iceberg: each batch clustered, each in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.catalog import TableInfo, describe
from dbt_zorder.columns import case_sensitive
from dbt_zorder.formats.build import build_format, with_row_bytes
from dbt_zorder.formats.history import last_whole, version_of
from dbt_zorder.formats.optimize import file_bytes, measure_format, own_format, rewrite_format
from dbt_zorder.formats.writer import writer
from dbt_zorder.layout.descent import apply_layout
from dbt_zorder.layout.plan import LayoutSpec, plan_layout
from dbt_zorder.layout.staging import staged
from dbt_zorder.stats.formats import format_stats
from dbt_zorder.table.append import AppendReport
from dbt_zorder.table.clock import Clock
from dbt_zorder.table.incremental import Batch, IncrementReport, after_batch, rows_after
from dbt_zorder.table.request import BuildRequest, check
from dbt_zorder.table.schema_change import add_columns_sql, compare, conform, keeps, target_schema


def increment_format(
    spark: SparkSession, df: DataFrame, request: BuildRequest, batch: Batch, how: str
) -> IncrementReport:
    """Add a query's rows to a table, or let them replace the partitions that they fall in.

    Args:
        spark: the session.
        df: the query.
        request: the model's settings.
        batch: how its rows go in.
        how: ``zorder_optimize`` of the model.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
        ZorderError: the table is of another format.
    """
    info = describe(spark, request.table)
    if info is None or info.kind == "VIEW" or (batch.overwrite and not request.spec.partition_by):
        built = build_format(spark, df, request)
        return IncrementReport(None, built, built.summary, built.version)
    info = own_format(spark, request)
    existing = spark.table(request.table.sql).schema
    schema = target_schema(
        compare(df.schema, existing, sensitive=case_sensitive(spark)), existing, batch.on_schema_change
    )
    if not keeps(existing, schema):  # columns go, or change their types: the table is replaced by one of all rows
        rows = rows_after(spark, conform(df, schema), schema, request, batch)
        built = build_format(spark, rows, request)
        return IncrementReport(None, built, built.summary, built.version)
    rows = conform(df, schema)
    kept = replace(request, spec=replace(request.spec, partition_by=list(info.partition_columns)))
    check(rows, kept)
    added = schema.fields[len(existing.fields) :]
    if added:
        comments = {column.name.lower(): request.comment_of(column.name) for column in added}
        spark.sql(add_columns_sql(request.table.sql, added, comments))
    clock = Clock()
    with staged(rows) as source:
        with clock.phase("sample"):
            layout = plan_layout(source, _batch_spec(spark, kept, rows, info))
        if layout.rows == 0 and not batch.overwrite:
            return _after(spark, request, AppendReport(0, 0, 0, 0, clock.seconds), batch, how)

        def write() -> None:
            made = writer(apply_layout(source, layout), request.table, request)
            made.overwritePartitions() if batch.overwrite else made.append()

        with clock.phase("write"):
            files, size, removed = _counted(spark, request, write)
    return _after(spark, request, AppendReport(layout.rows, files, size, removed, clock.seconds), batch, how)


def merge_format(spark: SparkSession, sql: str, request: BuildRequest, batch: Batch, how: str) -> IncrementReport:
    """Run a MERGE, which the format carries out by a plan of its own, and lay the table out anew if that is due.

    Raises:
        ZorderError: the table is of another format.
    """
    own_format(spark, request)
    clock = Clock()
    with clock.phase("write"):
        files, size, removed = _counted(spark, request, lambda: spark.sql(sql).collect())
    return _after(spark, request, AppendReport(None, files, size, removed, clock.seconds), batch, how)


def _batch_spec(spark: SparkSession, request: BuildRequest, rows: DataFrame, info: TableInfo) -> LayoutSpec:
    """Return how a batch is laid out: by itself, in files of the size that the table's have."""
    built = last_whole(spark, request.file_format, request.table)
    sized = replace(request.spec, files=None, file_size=file_bytes(request.spec, built, built.bytes))
    return with_row_bytes(spark, sized, rows, info, request)


def _counted(spark: SparkSession, request: BuildRequest, write: Callable[[], object]) -> tuple[int, int, int]:
    """Write, and return the number of new files, their bytes, and the number of files that are gone."""
    before = _files(spark, request)
    write()
    after = _files(spark, request)
    new = after.keys() - before.keys()
    return len(new), sum(after[path] for path in new), len(before.keys() - after.keys())


def _files(spark: SparkSession, request: BuildRequest) -> dict[str, int]:
    stats = format_stats(spark, request.file_format, request.table, [])
    return {row[0]: row[1] for row in stats.select("file_path", "file_size").collect()}


def _after(spark: SparkSession, request: BuildRequest, report: AppendReport, batch: Batch, how: str) -> IncrementReport:
    return after_batch(
        report,
        request.table,
        version_of(spark, request.file_format, request.table),
        lambda: measure_format(spark, request),
        (lambda: rewrite_format(spark, request, how)) if batch.may_rewrite else None,
    )
