"""Build a clustered Delta Lake or Iceberg table in one commit of its format."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import RowSource, WriterFor
from dbt_zorder.engine.file_size import sized_here
from dbt_zorder.engine.plan import make_plan
from dbt_zorder.engine.row_bytes import with_previous_row_bytes
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableInfo, TableName, describe
from dbt_zorder.stats.store import sizes_of
from dbt_zorder.stats.summary import Summary, summarize_format
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.build import warn_of_many, write
from dbt_zorder.tables.lakehouse.format import NOTHING_KEPT, Format, KeptProperties
from dbt_zorder.tables.lakehouse.lost_commits import check_lost
from dbt_zorder.tables.lakehouse.properties import table_properties
from dbt_zorder.tables.lakehouse.sink import FileTarget, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import check_session
from dbt_zorder.tables.lakehouse.state import current_version
from dbt_zorder.tables.lakehouse.targets import build_target
from dbt_zorder.tables.lakehouse.write_table import DropTable, TableWrite, put_table, written_name
from dbt_zorder.tables.report import BuildReport
from dbt_zorder.tables.reserved import check_free


def build(
    spark: SparkSession,
    form: Format,
    df: DataFrame,
    request: BuildRequest,
    drop: DropTable,
    *,
    info: TableInfo | None = None,
    before: str | None = None,
    kept: KeptProperties = NOTHING_KEPT,
    guard: Callable[[], None] | None = None,
) -> BuildReport:
    """Run a query into a table of a format, and create or replace the table in one commit.

    A table of another format, or a view, is dropped only after the new table is complete under another name. The new
    table is renamed immediately afterwards.

    Args:
        spark: the session.
        form: the format of the table.
        df: the query.
        request: the settings of the model.
        drop: a function that drops a Parquet table of ours, which the new table replaces.
        info: the catalog's entry under the table's name, where it was just read.
        before: the version of the table whose rows are in the query; None if the query need not contain them.
        kept: the properties that survive the replacement.
        guard: a function called before the table gets the rows. It runs just before a commit by this process, and
            before a table of another format is dropped. An exception from it abandons the build.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        BuildError: the table is no longer at version ``before``; nothing was written.
        LostRowsError: the table was no longer at that version when the commit replaced it.
    """
    check_session(spark, request)
    df = form.convert_types(df, request)
    check(df, request)
    check_free(spark, request.table, FORMAT_SUFFIX)
    keys = keys_for(df, request.spec)
    clock = Clock()
    info = info or describe(spark, request.table)
    commit = TableCommit(form, df, request, keys, drop, info, before, kept, guard)
    commit.wanted(request.table)  # raises before anything is read
    write(df, request, commit, clock)
    with clock.phase("stats"):
        summary = commit.summary or summary_of(spark, request, keys, commit.token)
    return BuildReport(current_version(spark, form.name, request.table), summary, clock.seconds, [])


@dataclass
class TableCommit:
    """A commit that creates or replaces a whole table.

    Attributes:
        form, df, request, keys, drop, before, kept, guard: the arguments of ``build``, and the clustering keys.
        info: the catalog's entry under the table's name; None if the name is free.
        token: the text that identifies the commit in the table's log.
        summary: the figures of the table, if this process wrote its files.
    """

    form: Format
    df: DataFrame
    request: BuildRequest
    keys: list[Key]
    drop: DropTable
    info: TableInfo | None
    before: str | None = None
    kept: KeptProperties = NOTHING_KEPT
    guard: Callable[[], None] | None = None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    summary: Summary | None = None
    by_spark: bool = False
    counts_first: bool = False
    _wanted: dict[TableName, Mapping[str, str]] = field(default_factory=dict, init=False)

    @property
    def is_new(self) -> bool:
        """Whether no table of this format has the name."""
        return self.info is None or self.info.provider != self.form.name

    def wanted(self, to: TableName) -> Mapping[str, str]:
        """Return the properties of the table under a name, computed once.

        Raises:
            ConfigError: the user's properties leave a z-order column without statistics.
        """
        if to not in self._wanted:
            columns = [key.column for key in self.keys]
            self._wanted[to] = table_properties(self.form, self.df, to, self.request, columns, is_new=self.is_new)
        return self._wanted[to]

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering keys, and a factory of the writer for the future table."""
        return self.keys, writer_for(partial(self._target, written_name(self.request, self.info)))

    def lay_out(self, source: RowSource) -> Layout | None:
        """Assign rows to files."""
        spec = measured(self.request.spec, self.df, self.info, self.request)
        sized = spec if source.rows is None else source.rows.with_row_bytes(spec)
        layout = sized_here(source, make_plan(source.query, sized, source.known), spec)
        if source.rows is None:
            warn_of_many(layout, self.request.table)
        return layout

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write and commit the table.

        Raises:
            BuildError: the table is no longer at version ``before``; nothing was written.
        """
        spark, form = self.df.sparkSession, self.form
        if self.before is not None:
            _check_version(spark, self.request, self.before)
        to_write = TableWrite(
            form, self.df, self.request, self.keys, source, layout, self._target, self.wanted, self.token, self.kept,
            self.guard,
        )  # fmt: skip
        if source.rows is not None and self.is_new:
            # a new table is created empty, filled, and then renamed: no reader sees it empty
            to_write.beside = form.sink.empty_table
        put_table(spark, self.request, self.info, to_write, self.drop)
        self.summary = to_write.summary

    def settle(self) -> None:
        """Check for a lost commit of another run, and remove the properties of dropped columns.

        Raises:
            LostRowsError: this commit replaced the commit of another run.
        """
        spark = self.df.sparkSession
        detected = self.summary is not None and self.form.sink.detects_conflicts
        if self.before is not None and not detected:
            check_lost(spark, self.form, self.request.table, self.before, self.token)
        self.form.forget_columns(spark, self.request.table, self.df.schema)

    def _target(self, to: TableName) -> FileTarget | str:
        return build_target(
            self.form, self.df, to, self.request, self.wanted(to), is_new=self.is_new, token=self.token,
            kept=self.kept, before=self.before,
        )  # fmt: skip


def _check_version(spark: SparkSession, request: BuildRequest, before: str) -> None:
    """Check that no other run changed a table since it was read.

    Raises:
        BuildError: its version is not ``before``.
    """
    if current_version(spark, request.file_format, request.table) != before:
        msg = f"Another run changed {request.table} while this one built it; this build is abandoned. Run it again."
        raise BuildError(msg)


def summary_of(spark: SparkSession, request: BuildRequest, keys: list[Key], token: str = "") -> Summary:
    """Return the figures of a table from its format's own statistics; columns without bounds have none.

    Args:
        spark: the session.
        request: the settings of the model.
        keys: the clustering keys.
        token: the token of the last commit, if that replaced the whole table.
    """
    columns = [key.column for key in keys]
    return summarize_format(state_of(spark, request.file_format, request.table).load_stats(columns, token), keys)


def measured(
    spec: LayoutSpec,
    df: DataFrame,
    info: TableInfo | None,
    request: BuildRequest,
    files: pa.Table | None = None,
) -> LayoutSpec:
    """Set the size of a row from the existing table, if format and columns are the same.

    Args:
        spec: the layout settings of the new rows.
        df: the new rows.
        info: the catalog's entry of the table.
        request: the settings of the model.
        files: the bytes and rows of each file of the table, if they were just read.
    """
    if info is None or info.provider != request.file_format:
        return spec

    def sizes() -> pa.Table:
        if files is not None:
            return files
        return sizes_of(state_of(df.sparkSession, request.file_format, request.table).load_stats([]))

    return with_previous_row_bytes(spec, df, info, sizes)
