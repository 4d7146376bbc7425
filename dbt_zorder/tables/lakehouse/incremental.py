"""One run of an incremental model over a table of Delta Lake or Iceberg: each batch clustered, each in one commit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import Holding, WriterFor
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
    naming_left_out,
    rows_after,
    same_partitions,
    schemas,
    table_of,
)
from dbt_zorder.tables.batch_size import files_of_batch, target_bytes
from dbt_zorder.tables.build import write
from dbt_zorder.tables.lakehouse.build import build, measured
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.rewrite import check_own, own_table, rewrite
from dbt_zorder.tables.lakehouse.sink import FormatFiles, put_files, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import writer
from dbt_zorder.tables.lakehouse.state import Standing, behind_append, known_standing, read_standing
from dbt_zorder.tables.lakehouse.targets import added_files
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
    """Add a query's rows to a table, or let them replace the partitions that they fall in.

    Args:
        spark: the session.
        form: of the table.
        query: analyses the query; called again where the table, which it may read, got new columns in between.
        request: the model's settings.
        batch: how its rows go in.
        how: ``zorder_optimize`` of the model.
        drop: drops a table of ours in Parquet, which a new one replaces.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
        ZorderError: the table is of another format.
        BuildError: it is not there any more.
    """
    if batch.overwrite and not request.spec.partition_by:
        info = table_of(spark, request.table)
        df = form.in_its_types(query(), request)
        rows = conform(df, schemas(spark, df, request, batch)[1])
        kept = form.carried(spark, info, rows, request)
        return IncrementReport.of_build(build(spark, form, rows, request, drop, info=info, kept=kept))
    state, info = _standing(spark, form, request)
    df = form.in_its_types(query(), request)
    existing, schema = schemas(spark, df, request, batch)
    with naming_left_out(df, schema, request, batch):
        check_parts(spark, info, request, schema, batch)
        if not keeps(existing, schema) or not same_partitions(spark, info, request, schema):
            # columns go, change their types, or part the table in another way: it is replaced by one of all rows
            with rows_after(spark, conform(df, schema), schema, request, batch) as rows:
                kept = form.carried(spark, info, rows, request)
                built = build(spark, form, rows, request, drop, before=state.version, kept=kept)
                return IncrementReport.of_build(built)
        check(conform(df, schema), request)
    added = schema.fields[len(existing.fields) :]
    if added:
        sensitive = case_sensitive(spark)
        comments = {column.name: request.comment_of(column.name, sensitive=sensitive) for column in added}
        spark.sql(add_columns_sql(request.table.sql, added, comments))
        state = state_of(spark, form.name, request.table)
        df = form.in_its_types(query(), request)
    rows = conform(df, schema)
    clock = Clock()
    commit = BatchCommit(form, rows, request, info, batch, state)
    if write(rows, request, commit, clock) is None:
        return IncrementReport(AppendReport(0, 0, 0, 0, clock.seconds), None, None, commit.state.version)
    report = AppendReport(commit.rows_written, *commit.counted, clock.seconds)
    return _after(spark, form, request, report, batch, how, commit.after)


@dataclass
class BatchCommit:
    """A batch that is added to a table, or replaces the partitions that it falls in, in one commit.

    Attributes:
        form: of the table.
        rows: the batch, in the table's columns.
        request: of the model.
        info: of the table.
        batch: how the rows go in.
        state: of the table, as it was last looked at.
        rows_written: of the batch.
        counted: new files, their bytes, and files that are gone.
        after: the table with the batch, None if its files could not be counted.
    """

    form: Format
    rows: DataFrame
    request: BuildRequest
    info: TableInfo
    batch: Batch
    state: FormatState
    rows_written: int = 0
    counted: tuple[int, int, int] = (0, 0, 0)
    after: Standing | None = None
    by_spark: bool = False

    def __post_init__(self) -> None:
        # found once, before the query runs, where partitions are replaced: what others commit to them since is heeded
        self._replaced = cache(partial(added_files, self.form, self.rows, self.request, replaces=True))

    @property
    def counts_first(self) -> bool:
        """Whether a batch without rows is to be found before it is laid out."""
        return not self.batch.overwrite

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering columns, and what writes files of the table."""
        self._keys = keys_for(self.rows, self.request.spec)
        return self._keys, writer_for(self._target)

    def lay_out(self, holding: Holding) -> Layout | None:
        """Return how the batch is laid out: by itself, in files of the size that the table's have.

        A batch that replaces partitions makes them as a build would; None if one that is added has no rows.
        """
        overwrite, spark = self.batch.overwrite, self.rows.sparkSession
        if count_of(holding.known) == 0 and not overwrite:
            return None
        # the query may have taken long: what others have committed meanwhile is theirs
        self.state = state_of(spark, self.form.name, self.request.table)
        self._standing = known_standing(spark, self.form, self.request, state=self.state, keys=self._keys)
        spec, built = self.request.spec, self._standing.built
        if not overwrite:
            files = None
            if spec.files is not None:
                counted = count_of(holding.known)
                counted = holding.source.count() if counted is None else counted
                table_rows = self._standing.size[1]
                files = files_of_batch(spec, built, table_rows, counted, partitioned=bool(spec.partition_by))
            size = target_bytes(spec, built, built.bytes)
            spec = replace(spec, files=files, file_size=spec.file_size if files is not None else size)
        spec = measured(spec, self.rows, self.info, self.request, self._standing.files)
        told = spec if holding.rows is None else holding.rows.with_row_bytes(spec)
        layout = plan_layout(holding.source, told, holding.known)
        return layout if layout.rows or overwrite else None

    def write(self, holding: Holding, layout: Layout) -> None:
        """Write and commit the batch."""
        self._own = put_files(self.rows.sparkSession, holding, layout, self._target, self.rows.schema)
        if self._own is None:
            made = writer(self.form, apply_layout(holding.for_spark, layout), self.request.table, self.request)
            made.overwritePartitions() if self.batch.overwrite else made.append()
        self.rows_written = layout.rows

    def settle(self) -> None:
        """Count the files that came and went."""
        self.counted, self.after = _counted(self.request, self._standing, self._read_again)

    def _target(self) -> FormatFiles | str:
        """Return the table that gets the files, by what it was when it was last looked at."""
        if self.batch.overwrite:
            return self._replaced()
        return added_files(self.form, self.rows, self.request, replaces=False, state=self.state)

    def _read_again(self) -> Standing:
        """Read what the format says of the table once the batch is in."""
        spark, form, request = self.rows.sparkSession, self.form, self.request
        if self.batch.overwrite:
            return known_standing(spark, form, request, self._standing.built)
        return behind_append(spark, form, request, self._standing, self._own)


def _standing(spark: SparkSession, form: Format, request: BuildRequest) -> tuple[FormatState, TableInfo]:
    """Return the table that a batch is for, and what there is to say of its columns and partitions.

    Raises:
        BuildError: it is not there, or is a view.
        ZorderError: it is of another format.
    """
    with contextlib.suppress(AnalysisException):  # it is not there, which is to be told, or aside for a moment
        invalidate_entry(spark, request.table.schema, request.table.identifier)
    state = own_state(spark, form.name, request.table)
    info = None if state is None else state.info()
    if info is None:  # to describe it takes as long as all of this
        info = check_own(table_of(spark, request.table), request)
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
    """Run a MERGE, which the format carries out by a plan of its own, and lay the table out anew if that is due.

    Args:
        spark: the session.
        form: of the table.
        sql: the statement.
        request: the model's settings.
        batch: whether a rewrite may follow.
        how: ``zorder_optimize`` of the model.
        unique_key: columns that the statement joins by; what formats say of one that is not there names nothing.

    Raises:
        ColumnError: the statement failed, and the table has no column that ``unique_key`` names.
        ZorderError: the table is of another format.
    """
    own_table(spark, request)
    clock = Clock()
    with clock.phase("write"):
        standing = known_standing(spark, form, request)
        try:
            spark.sql(sql).collect()
        except Exception as exc:
            _explain_key(spark.table(request.table.sql), unique_key, exc)
            raise
        counted, after = _counted(request, standing, lambda: known_standing(spark, form, request, standing.built))
    return _after(spark, form, request, AppendReport(None, *counted, clock.seconds), batch, how, after)


def _explain_key(table: DataFrame, unique_key: Sequence[str], cause: Exception) -> None:
    """Name the part of a key that is no column; it may be an expression, so that a MERGE that worked is not asked."""
    for name in unique_key:
        try:
            resolve(name, table.schema, sensitive=case_sensitive(table.sparkSession))
        except ColumnError as exc:
            msg = f"unique_key: {exc}"
            raise ColumnError(msg) from cause


def _counted(
    request: BuildRequest, standing: Standing, then: Callable[[], Standing]
) -> tuple[tuple[int, int, int], Standing | None]:
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
    form: Format,
    request: BuildRequest,
    report: AppendReport,
    batch: Batch,
    how: str,
    standing: Standing | None,
) -> IncrementReport:
    version = standing.version if standing else ""
    return after_batch(
        report,
        request.table,
        version,
        lambda: (standing if standing and standing.keys else read_standing(spark, form, request)).overlap(request.spec),
        (lambda: rewrite(spark, form, request, how)) if batch.may_rewrite else None,
    )
