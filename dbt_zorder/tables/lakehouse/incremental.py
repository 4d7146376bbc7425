"""Run an incremental model on a Delta Lake or Iceberg table: cluster each batch, and commit it once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import RowSource, WriterFor
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import ColumnError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import count_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.spark.columns import case_sensitive, resolve
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.table_state import FormatState, own_state, state_of
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
from dbt_zorder.tables.batch_size import files_of_batch, target_bytes
from dbt_zorder.tables.build import write
from dbt_zorder.tables.lakehouse.build import build, measured
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.rewrite import check_own, own_table, rewrite
from dbt_zorder.tables.lakehouse.sink import FileTarget, write_files, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import writer
from dbt_zorder.tables.lakehouse.state import LakehouseState, read_state, read_state_or_sizes, state_after_append
from dbt_zorder.tables.lakehouse.targets import batch_target
from dbt_zorder.tables.lakehouse.write_table import DropTable
from dbt_zorder.tables.report import AppendReport, IncrementReport
from dbt_zorder.tables.schema_change import add_columns_sql, conform, keeps

_LOG = logging.getLogger("dbt_zorder")


def increment(
    spark: SparkSession,
    form: Format,
    query: Callable[[], DataFrame],
    request: BuildRequest,
    batch: Batch,
    how: str,
    drop: DropTable,
) -> IncrementReport:
    """Add a query's rows to a table, or replace the partitions of these rows.

    Args:
        spark: the session.
        form: the format of the table.
        query: a function that analyses the query. It is called again after new columns were added to the table, which
            the query may read.
        request: the settings of the model.
        batch: the way the rows enter the table.
        how: the model's ``zorder_optimize``.
        drop: a function that drops a Parquet table of ours, which a new table replaces.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the query's columns.
        ZorderError: the table has another format.
        BuildError: the table no longer exists.
    """
    if batch.overwrite and not request.spec.partition_by:
        info = describe_existing(spark, request.table)
        df = form.convert_types(query(), request)
        rows = conform(df, schemas(spark, df, request, batch)[1])
        kept = form.properties_to_keep(spark, info, rows, request)
        return IncrementReport.of_build(build(spark, form, rows, request, drop, info=info, kept=kept))
    state, info = _batch_table(spark, form, request)
    df = form.convert_types(query(), request)
    existing, schema = schemas(spark, df, request, batch)
    with naming_left_out(df, schema, request, batch):
        check_parts(spark, info, request, schema, batch)
        if not keeps(existing, schema) or not same_partitions(spark, info, request, schema):
            # columns are dropped, change type, or partition differently: a table of all rows replaces it
            with rows_after(spark, conform(df, schema), schema, request, batch) as rows:
                kept = form.properties_to_keep(spark, info, rows, request)
                built = build(spark, form, rows, request, drop, before=state.version, kept=kept)
                return IncrementReport.of_build(built)
        check(conform(df, schema), request)
    added = schema.fields[len(existing.fields) :]
    if added:
        sensitive = case_sensitive(spark)
        comments = {column.name: request.comment_of(column.name, sensitive=sensitive) for column in added}
        spark.sql(add_columns_sql(request.table.sql, added, comments))
        state = state_of(spark, form.name, request.table)
        df = form.convert_types(query(), request)
    rows = conform(df, schema)
    clock = Clock()
    commit = BatchCommit(form, rows, request, info, batch, state)
    if write(rows, request, commit, clock) is None:
        return IncrementReport(AppendReport(0, 0, 0, 0, clock.seconds), None, None, commit.state.version)
    report = AppendReport(commit.rows_written, *commit.counted, clock.seconds)
    return _after(spark, form, request, report, batch, how, commit.after)


@dataclass
class BatchCommit:
    """A commit that adds a batch, or replaces the partitions of its rows.

    Attributes:
        form: the format of the table.
        rows: the batch, in the table's columns.
        request: the settings of the model.
        info: the catalog's entry of the table.
        batch: the way the rows enter the table.
        state: the last state read of the table.
        rows_written: the number of rows of the batch.
        counted: the number of new files, their bytes, and the number of removed files.
        after: the table after the commit; None if its files could not be counted.
    """

    form: Format
    rows: DataFrame
    request: BuildRequest
    info: TableInfo
    batch: Batch
    state: FormatState
    rows_written: int = 0
    counted: tuple[int, int, int] = (0, 0, 0)
    after: LakehouseState | None = None
    by_spark: bool = False

    def __post_init__(self) -> None:
        # replaced partitions are looked up once, before the query runs: the commit then detects later commits to them
        self._replaced = cache(partial(batch_target, self.form, self.rows, self.request, replaces=True))

    @property
    def counts_first(self) -> bool:
        """Whether to count the rows before they are laid out, and skip a batch without rows."""
        return not self.batch.overwrite

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering keys, and a factory of the writer for the table."""
        self._keys = keys_for(self.rows, self.request.spec)
        return self._keys, writer_for(self._target)

    def lay_out(self, source: RowSource) -> Layout | None:
        """Lay out the batch by itself, in files of the same size as the table's.

        A batch that replaces partitions is laid out as in a full build. Return None for an appended batch without rows.
        """
        overwrite, spark = self.batch.overwrite, self.rows.sparkSession
        if count_of(source.known) == 0 and not overwrite:
            return None
        # a long query leaves time for commits of other runs, which must not count as ours
        self.state = state_of(spark, self.form.name, self.request.table)
        self._state_before = read_state_or_sizes(spark, self.form, self.request, state=self.state, keys=self._keys)
        spec, built = self.request.spec, self._state_before.built
        if not overwrite:
            files = None
            if spec.files is not None:
                counted = count_of(source.known)
                counted = source.query.count() if counted is None else counted
                table_rows = self._state_before.size[1]
                files = files_of_batch(spec, built, table_rows, counted, partitioned=bool(spec.partition_by))
            size = target_bytes(spec, built, built.bytes)
            spec = replace(spec, files=files, file_size=spec.file_size if files is not None else size)
        spec = measured(spec, self.rows, self.info, self.request, self._state_before.files)
        sized = spec if source.rows is None else source.rows.with_row_bytes(spec)
        layout = plan_layout(source.query, sized, source.known)
        return layout if layout.rows or overwrite else None

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write and commit the batch."""
        self._own = write_files(self.rows.sparkSession, source, layout, self._target, self.rows.schema)
        if self._own is None:
            made = writer(self.form, apply_layout(source.for_spark, layout), self.request.table, self.request)
            made.overwritePartitions() if self.batch.overwrite else made.append()
        self.rows_written = layout.rows

    def settle(self) -> None:
        """Count the new and the removed files."""
        self.counted, self.after = _counted(self.request, self._state_before, self._read_again)

    def _target(self) -> FileTarget | str:
        """Return the target table in the state last read, or the reason why only Spark can write to it."""
        if self.batch.overwrite:
            return self._replaced()
        return batch_target(self.form, self.rows, self.request, replaces=False, state=self.state)

    def _read_again(self) -> LakehouseState:
        """Read the table's metadata after the commit."""
        spark, form, request = self.rows.sparkSession, self.form, self.request
        if self.batch.overwrite:
            return read_state_or_sizes(spark, form, request, self._state_before.built)
        return state_after_append(spark, form, request, self._state_before, self._own)


def _batch_table(spark: SparkSession, form: Format, request: BuildRequest) -> tuple[FormatState, TableInfo]:
    """Return the state of a batch's table, and its columns and partitions.

    Raises:
        BuildError: it does not exist, or is a view.
        ZorderError: it has another format.
    """
    with contextlib.suppress(AnalysisException):  # a missing table raises below
        invalidate_entry(spark, request.table.schema, request.table.identifier)
    state = own_state(spark, form.name, request.table)
    info = None if state is None else state.info()
    if info is None:  # a describe lasts as long as all of the above
        info = check_own(describe_existing(spark, request.table), request)
    return state or state_of(spark, form.name, request.table), info


def merge(
    spark: SparkSession,
    form: Format,
    sql: str,
    request: BuildRequest,
    batch: Batch,
    how: str,
    unique_key: Sequence[str] = (),
) -> IncrementReport:
    """Run a MERGE with the format's own plan, and rewrite the table's layout if that is due.

    Args:
        spark: the session.
        form: the format of the table.
        sql: the statement.
        request: the settings of the model.
        batch: the batch settings, which say whether a rewrite may follow.
        how: the model's ``zorder_optimize``.
        unique_key: the join columns of the statement, to name a missing one: the formats' own errors do not.

    Raises:
        ColumnError: the statement failed, and the table lacks a column of ``unique_key``.
        ZorderError: the table has another format.
    """
    own_table(spark, request)
    clock = Clock()
    with clock.phase("write"):
        state_before = read_state_or_sizes(spark, form, request)
        try:
            spark.sql(sql).collect()
        except Exception as exc:
            _explain_key(spark.table(request.table.sql), unique_key, exc)
            raise
        counted, after = _counted(
            request, state_before, lambda: read_state_or_sizes(spark, form, request, state_before.built)
        )
    return _after(spark, form, request, AppendReport(None, *counted, clock.seconds), batch, how, after)


def _explain_key(table: DataFrame, unique_key: Sequence[str], cause: Exception) -> None:
    """Raise an error that names the first key part that is no column.

    A key part may be an expression, so only a failed MERGE is checked.
    """
    for name in unique_key:
        try:
            resolve(name, table.schema, sensitive=case_sensitive(table.sparkSession))
        except ColumnError as exc:
            msg = f"unique_key: {exc}"
            raise ColumnError(msg) from cause


def _counted(
    request: BuildRequest, state_before: LakehouseState, then: Callable[[], LakehouseState]
) -> tuple[tuple[int, int, int], LakehouseState | None]:
    """Return the number of new files, their bytes, the number of removed files, and the table as it is now.

    The rows are committed, so no error may fail the run: a retry would add them twice.
    """
    try:
        found = then()
    except Exception as exc:
        _LOG.warning("the batch is in %s, but its files could not be counted: %s", request.table, in_one_line(exc))
        return (0, 0, 0), None
    before, after = state_before.bytes_of, found.bytes_of
    new = after.keys() - before.keys()
    return (len(new), sum(after[path] for path in new), len(before.keys() - after.keys())), found


def _after(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    report: AppendReport,
    batch: Batch,
    how: str,
    state_after: LakehouseState | None,
) -> IncrementReport:
    version = state_after.version if state_after else ""
    return after_batch(
        report,
        request.table,
        version,
        lambda: (state_after if state_after and state_after.keys else read_state(spark, form, request)).overlap(
            request.spec
        ),
        (lambda: rewrite(spark, form, request, how)) if batch.may_rewrite else None,
    )
