"""One run of an incremental model over a table of Delta Lake or Iceberg: each batch clustered, each in one commit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import Holding, hold_rows
from dbt_zorder.engine.keep_result import staged
from dbt_zorder.engine.local.fetched_keys import Known, count_of
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import ColumnError
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.catalog_entry import look_anew
from dbt_zorder.spark.columns import case_sensitive, resolve
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.table_state import FormatState, own_state, state_of
from dbt_zorder.tables.delta.kept_properties import carried
from dbt_zorder.tables.lakehouse.build import build_format, measured
from dbt_zorder.tables.lakehouse.rewrite import check_format, own_format, rewrite_format
from dbt_zorder.tables.lakehouse.sink import Find, put_files, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import added_files, writer
from dbt_zorder.tables.lakehouse.state import FormatStanding, behind_append, file_bytes, known_format, read_format
from dbt_zorder.tables.lakehouse.types import as_kept
from dbt_zorder.tables.parquet.append import AppendReport
from dbt_zorder.tables.parquet.batch import (
    Batch,
    IncrementReport,
    after_batch,
    check_parts,
    naming_left_out,
    rows_after,
    same_partitions,
    schemas,
    table_of,
)
from dbt_zorder.tables.parquet.saved_layout import files_of_batch
from dbt_zorder.tables.schema_change import add_columns_sql, conform, keeps

_LOG = logging.getLogger("dbt_zorder")


def increment_format(
    spark: SparkSession, query: Callable[[], DataFrame], request: BuildRequest, batch: Batch, how: str
) -> IncrementReport:
    """Add a query's rows to a table, or let them replace the partitions that they fall in.

    Args:
        spark: the session.
        query: analyses the query; called again where the table, which it may read, got new columns in between.
        request: the model's settings.
        batch: how its rows go in.
        how: ``zorder_optimize`` of the model.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
        ZorderError: the table is of another format.
        BuildError: it is not there any more.
    """
    if batch.overwrite and not request.spec.partition_by:
        info = table_of(spark, request.table)
        df = as_kept(query(), request)
        rows = conform(df, schemas(spark, df, request, batch)[1])
        return IncrementReport.of_build(build_format(spark, rows, request, kept=carried(spark, info, rows, request)))
    state, info = _standing(spark, request)
    df = as_kept(query(), request)
    existing, schema = schemas(spark, df, request, batch)
    with naming_left_out(df, schema, request, batch):
        check_parts(spark, info, request, schema, batch)
        if not keeps(existing, schema) or not same_partitions(spark, info, request, schema):
            # columns go, change their types, or part the table in another way: it is replaced by one of all rows
            with rows_after(spark, conform(df, schema), schema, request, batch) as rows:
                kept = carried(spark, info, rows, request)
                return IncrementReport.of_build(build_format(spark, rows, request, state.version, kept))
        check(conform(df, schema), request)
    added = schema.fields[len(existing.fields) :]
    if added:
        sensitive = case_sensitive(spark)
        comments = {column.name: request.comment_of(column.name, sensitive=sensitive) for column in added}
        spark.sql(add_columns_sql(request.table.sql, added, comments))
        state = state_of(spark, request.file_format, request.table)
        df = as_kept(query(), request)
    rows = conform(df, schema)
    clock = Clock()
    find = partial(added_files, rows, request, replaces=batch.overwrite)
    target: Find = partial(find, state=state)
    if batch.overwrite:  # found once, before the query runs: what others commit to the partitions since then is heeded
        target = cache(find)
    with staged(rows) as held, contextlib.ExitStack() as until_written:
        with clock.phase("query"):
            keys = keys_for(rows, request.spec)
            holding = until_written.enter_context(hold_rows(held, request, keys, writer_for(target)))
            if holding.known is None and not batch.overwrite:
                holding.known = held.count_kept()
        with clock.phase("sample"):
            known, holding.known = holding.known, None
            layout = None
            if count_of(known) != 0 or batch.overwrite:
                # the query may have taken long: what others have committed meanwhile is theirs
                state = state_of(spark, request.file_format, request.table)
                standing = known_format(spark, request, state=state, keys=keys)
                layout = _laid_out(spark, holding, known, request, rows, info, batch, standing)
            del known  # the keys of all rows
        if layout is None or not (layout.rows or batch.overwrite):
            return IncrementReport(AppendReport(0, 0, 0, 0, clock.seconds), None, None, state.version)
        if not batch.overwrite:
            target = partial(find, state=state)
        with clock.phase("write"):
            own = put_files(spark, holding, layout, target, rows.schema)
            if own is None:
                made = writer(apply_layout(holding.for_spark, layout), request.table, request)
                made.overwritePartitions() if batch.overwrite else made.append()
            until_written.close()
            counted, after = _counted(request, standing, partial(_read_again, spark, request, standing, batch, own))
    return _after(spark, request, AppendReport(layout.rows, *counted, clock.seconds), batch, how, after)


def _standing(spark: SparkSession, request: BuildRequest) -> tuple[FormatState, TableInfo]:
    """Return the table that a batch is for, and what there is to say of its columns and partitions.

    Raises:
        BuildError: it is not there, or is a view.
        ZorderError: it is of another format.
    """
    with contextlib.suppress(AnalysisException):  # it is not there, which is to be told, or aside for a moment
        look_anew(spark, request.table.schema, request.table.identifier)
    state = own_state(spark, request.file_format, request.table)
    info = None if state is None else state.info()
    if info is None:  # to describe it takes as long as all of this
        info = check_format(table_of(spark, request.table), request)
    return state or state_of(spark, request.file_format, request.table), info


def merge_format(
    spark: SparkSession, sql: str, request: BuildRequest, batch: Batch, how: str, unique_key: Sequence[str] = ()
) -> IncrementReport:
    """Run a MERGE, which the format carries out by a plan of its own, and lay the table out anew if that is due.

    Args:
        spark: the session.
        sql: the statement.
        request: the model's settings.
        batch: whether a rewrite may follow.
        how: ``zorder_optimize`` of the model.
        unique_key: columns that the statement joins by; what formats say of one that is not there names nothing.

    Raises:
        ColumnError: the statement failed, and the table has no column that ``unique_key`` names.
        ZorderError: the table is of another format.
    """
    own_format(spark, request)
    clock = Clock()
    with clock.phase("write"):
        standing = known_format(spark, request)
        try:
            spark.sql(sql).collect()
        except Exception as exc:
            _explain_key(spark.table(request.table.sql), unique_key, exc)
            raise
        counted, after = _counted(request, standing, lambda: known_format(spark, request, standing.built))
    return _after(spark, request, AppendReport(None, *counted, clock.seconds), batch, how, after)


def _explain_key(table: DataFrame, unique_key: Sequence[str], cause: Exception) -> None:
    """Name the part of a key that is no column; it may be an expression, so that a MERGE that worked is not asked."""
    for name in unique_key:
        try:
            resolve(name, table.schema, sensitive=case_sensitive(table.sparkSession))
        except ColumnError as exc:
            msg = f"unique_key: {exc}"
            raise ColumnError(msg) from cause


def _laid_out(
    spark: SparkSession,
    holding: Holding,
    known: Known,
    request: BuildRequest,
    rows: DataFrame,
    info: TableInfo,
    batch: Batch,
    standing: FormatStanding,
) -> Layout:
    """Return how a batch is laid out: by itself, in files of the size that the table's have.

    A batch that replaces partitions makes them as a build would.
    """
    spec, built = request.spec, standing.built
    if not batch.overwrite:
        files = None
        if spec.files is not None:
            counted = count_of(known)
            counted = holding.source.count() if counted is None else counted
            files = files_of_batch(spec, built, standing.size[1], counted, partitioned=bool(spec.partition_by))
        size = file_bytes(spec, built, built.bytes)
        spec = replace(spec, files=files, file_size=spec.file_size if files is not None else size)
    spec = measured(spark, spec, rows, info, request, standing.files)
    return plan_layout(holding.source, spec if holding.rows is None else holding.rows.with_row_bytes(spec), known)


def _read_again(
    spark: SparkSession,
    request: BuildRequest,
    standing: FormatStanding,
    batch: Batch,
    own: Mapping[str, int] | None,
) -> FormatStanding:
    """Read what a format says of a table once a batch is in."""
    if batch.overwrite:
        return known_format(spark, request, standing.built)
    return behind_append(spark, request, standing, own)


def _counted(
    request: BuildRequest, standing: FormatStanding, then: Callable[[], FormatStanding]
) -> tuple[tuple[int, int, int], FormatStanding | None]:
    """Return the number of new files, their bytes, the number of files that are gone, and the table as it is now.

    The rows are in, so that nothing fails the run any more: it would be run again, and add them twice.
    """
    try:
        found = then()
    except Exception as exc:
        _LOG.warning("the batch is in %s, but its files could not be counted: %s", request.table, in_one_line(exc))
        return (0, 0, 0), None
    before, after = standing.bytes_of, found.bytes_of
    new = after.keys() - before.keys()
    return (len(new), sum(after[path] for path in new), len(before.keys() - after.keys())), found


def _after(
    spark: SparkSession,
    request: BuildRequest,
    report: AppendReport,
    batch: Batch,
    how: str,
    standing: FormatStanding | None,
) -> IncrementReport:
    version = standing.version if standing else ""
    return after_batch(
        report,
        request.table,
        version,
        lambda: (standing if standing and standing.keys else read_format(spark, request)).overlap(request.spec),
        (lambda: rewrite_format(spark, request, how)) if batch.may_rewrite else None,
    )
