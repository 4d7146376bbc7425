"""One build of a table in Delta Lake or Iceberg: clustered, and committed as a whole by the format."""

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
from dbt_zorder.tables.lakehouse.format import NOTHING, Carried, Format
from dbt_zorder.tables.lakehouse.lost_commits import check_lost
from dbt_zorder.tables.lakehouse.properties import table_properties
from dbt_zorder.tables.lakehouse.sink import FormatFiles, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import check_session
from dbt_zorder.tables.lakehouse.state import version_of
from dbt_zorder.tables.lakehouse.targets import made_files
from dbt_zorder.tables.lakehouse.write_table import DropTable, TableWrite, name_of, put_table
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
    kept: Carried = NOTHING,
    guard: Callable[[], None] | None = None,
) -> BuildReport:
    """Run a query into a table of a format, which is created or replaced in one commit.

    A table of another format, or a view, is dropped only when the new table stands beside it, and the new one renamed
    at once after that.

    Args:
        spark: the session.
        form: of the table.
        df: the query.
        request: what to build of it.
        drop: drops a table of ours in Parquet, which the new one replaces.
        info: what the catalog says of what has the name, where that was just asked.
        before: version of the table whose rows are in the query; None if they need not be.
        kept: of the table that is replaced.
        guard: called before a table gets the rows, just before its commit where this process makes that, and before
            one of another format goes; what it raises abandons the build.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        BuildError: the table is no longer of the version ``before``; nothing was written.
        LostRowsError: it was not when the commit replaced it.
    """
    check_session(spark, request)
    df = form.in_its_types(df, request)
    check(df, request)
    check_free(spark, request.table, FORMAT_SUFFIX)
    keys = keys_for(df, request.spec)
    clock = Clock()
    info = info or describe(spark, request.table)
    commit = TableCommit(form, df, request, keys, drop, info, before, kept, guard)
    commit.wanted(request.table)  # what is wrong with them is told before anything is read
    write(df, request, commit, clock)
    with clock.phase("stats"):
        summary = commit.summary or summary_of(spark, request, keys, commit.token)
    return BuildReport(version_of(spark, form.name, request.table), summary, clock.seconds, [])


@dataclass
class TableCommit:
    """A whole table, made or replaced by one commit of its format.

    Attributes:
        form, df, request, keys, drop, info, before, kept, guard: as of ``build``; ``info`` is of what has the name.
        token: by which the commit is found again.
        summary: figures of the table, where this process wrote its files.
    """

    form: Format
    df: DataFrame
    request: BuildRequest
    keys: list[Key]
    drop: DropTable
    info: TableInfo | None
    before: str | None = None
    kept: Carried = NOTHING
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
        """Return the properties of the table under a name, asked for once.

        Raises:
            ConfigError: the user's leave a z-order column without statistics.
        """
        if to not in self._wanted:
            columns = [key.column for key in self.keys]
            self._wanted[to] = table_properties(self.form, self.df, to, self.request, columns, is_new=self.is_new)
        return self._wanted[to]

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering columns, and what writes files of the table as it will be."""
        return self.keys, writer_for(partial(self._target, name_of(self.request, self.info)))

    def lay_out(self, holding: RowSource) -> Layout | None:
        """Return which row goes into which file."""
        spec = measured(self.request.spec, self.df, self.info, self.request)
        told = spec if holding.rows is None else holding.rows.with_row_bytes(spec)
        layout = sized_here(holding, make_plan(holding.source, told, holding.known), spec)
        if holding.rows is None:
            warn_of_many(layout, self.request.table)
        return layout

    def write(self, holding: RowSource, layout: Layout) -> None:
        """Write and commit the table.

        Raises:
            BuildError: it is no longer of the version ``before``; nothing was written.
        """
        spark, form = self.df.sparkSession, self.form
        if self.before is not None:
            _check_version(spark, self.request, self.before)
        to_write = TableWrite(
            form, self.df, self.request, self.keys, holding, layout, self._target, self.wanted, self.token, self.kept,
            self.guard,
        )  # fmt: skip
        if holding.rows is not None and self.is_new:
            # a new table is made without rows, gets its files, and then its name: no reader sees it without them
            to_write.beside = form.sink.empty_table
        put_table(spark, self.request, self.info, to_write, self.drop)
        self.summary = to_write.summary

    def settle(self) -> None:
        """Find out whether a commit of somebody else was lost, and forget columns that the table lacks by now.

        Raises:
            LostRowsError: one was.
        """
        spark = self.df.sparkSession
        heeded = self.summary is not None and self.form.sink.heeds_before
        if self.before is not None and not heeded:
            check_lost(spark, self.form, self.request.table, self.before, self.token)
        self.form.forget_columns(spark, self.request.table, self.df.schema)

    def _target(self, to: TableName) -> FormatFiles | str:
        return made_files(
            self.form, self.df, to, self.request, self.wanted(to), is_new=self.is_new, token=self.token,
            kept=self.kept, before=self.before,
        )  # fmt: skip


def _check_version(spark: SparkSession, request: BuildRequest, before: str) -> None:
    """Find out whether somebody else changed a table since it was read.

    Raises:
        BuildError: its version is not ``before``.
    """
    if version_of(spark, request.file_format, request.table) != before:
        msg = f"Another run changed {request.table} while this one built it; this build is abandoned. Run it again."
        raise BuildError(msg)


def summary_of(spark: SparkSession, request: BuildRequest, keys: list[Key], token: str = "") -> Summary:
    """Return the figures of a table by the format's own statistics; of columns without bounds there are none.

    Args:
        spark: the session.
        request: of the model.
        keys: the z-order columns.
        token: of the commit, where it replaced all of the table.
    """
    columns = [key.column for key in keys]
    return summarize_format(state_of(spark, request.file_format, request.table).known(columns, token), keys)


def measured(
    spec: LayoutSpec,
    df: DataFrame,
    info: TableInfo | None,
    request: BuildRequest,
    files: pa.Table | None = None,
) -> LayoutSpec:
    """Take the size of a row from the table as it is, where its format and columns are the same.

    Args:
        spec: of the rows to lay out.
        df: the rows.
        info: of the table.
        request: of the model.
        files: bytes and rows of each of its files, where they were just read.
    """
    if info is None or info.provider != request.file_format:
        return spec

    def sizes() -> pa.Table:
        if files is not None:
            return files
        return sizes_of(state_of(df.sparkSession, request.file_format, request.table).known([]))

    return with_previous_row_bytes(spec, df, info, sizes)
