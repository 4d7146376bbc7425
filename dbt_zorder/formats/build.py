"""One build of a table in Delta Lake or Iceberg: clustered, and committed as a whole by the format."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.catalog import FORMAT_SUFFIX, TableInfo, TableName, describe, managed_location
from dbt_zorder.errors import BuildError
from dbt_zorder.formats.carry import NOTHING, Carried
from dbt_zorder.formats.delta_new import delta_id
from dbt_zorder.formats.history import version_of
from dbt_zorder.formats.kept_types import as_kept
from dbt_zorder.formats.lost import check_lost
from dbt_zorder.formats.own_files import Find, FormatFiles, put_files, writer_for
from dbt_zorder.formats.properties import forget_columns, has_whole_bounds, table_properties
from dbt_zorder.formats.writer import check_made, check_session, create, filled_files, made_files, make_empty
from dbt_zorder.layout.descent import apply_layout
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import LayoutSpec, keys_for, plan_layout
from dbt_zorder.layout.staging import staged
from dbt_zorder.stats.footers import stats_of_files
from dbt_zorder.stats.formats import state_of
from dbt_zorder.stats.store import sizes_of
from dbt_zorder.table.build import BuildReport, warn_of_many, with_row_bytes
from dbt_zorder.table.clock import Clock
from dbt_zorder.table.files import exists
from dbt_zorder.table.holding import Holding, hold_rows
from dbt_zorder.table.pilot import sized_here
from dbt_zorder.table.remove import drop_table
from dbt_zorder.table.request import BuildRequest, check
from dbt_zorder.table.summary import Summary, summarize_format


def build_format(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    before: str | None = None,
    kept: Carried = NOTHING,
    guard: Callable[[], None] | None = None,
) -> BuildReport:
    """Run a query into a table of ``request.file_format``, which is created or replaced in one commit.

    A table of another format, or a view, is dropped only when the new table stands beside it, and the new one renamed
    at once after that.

    Args:
        spark: the session.
        df: the query.
        request: what to build of it.
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
    df = as_kept(df, request)
    check(df, request)
    keys = keys_for(df, request.spec)
    clock = Clock()
    info = describe(spark, request.table)
    is_new = info is None or info.provider != request.file_format

    @cache
    def wanted(to: TableName) -> Mapping[str, str]:
        return table_properties(df, to, request, [key.column for key in keys], is_new=is_new)

    wanted(request.table)  # what is wrong with them is told before anything is read
    token = uuid.uuid4().hex

    def target(to: TableName) -> FormatFiles | str:
        return made_files(df, to, request, wanted(to), is_new=is_new, token=token, kept=kept, before=before)

    with staged(df) as held, contextlib.ExitStack() as until_written:
        with clock.phase("query"):
            files = writer_for(partial(target, _name_of(request, info)))
            holding = until_written.enter_context(hold_rows(held, request, keys, files))
        with clock.phase("sample"):
            spec = measured(spark, request.spec, df, info, request)
            told = spec if holding.rows is None else holding.rows.with_row_bytes(spec)
            layout = sized_here(holding, plan_layout(holding.source, told, holding.known), spec)
            holding.known = None  # the keys of all rows
            if holding.rows is None:
                warn_of_many(layout, request.table)
        with clock.phase("write"):
            if before is not None:
                _check_version(spark, request, before)
            write = _Write(df, request, keys, holding, layout, target, wanted, token, kept, guard)
            # a new Delta table is made without rows, gets its files, and then its name: no reader sees it without them
            write.beside = holding.rows is not None and is_new and request.file_format == "delta"
            _put(spark, request, info, write)
            del write.holding, holding
            until_written.close()
            # a commit of this process to Delta has found out by itself
            if before is not None and (write.summary is None or request.file_format != "delta"):
                check_lost(spark, request.file_format, request.table, before, token)
            forget_columns(spark, request, df.schema)
    with clock.phase("stats"):
        summary = write.summary or summary_of(spark, request, keys, token)
    return BuildReport(version_of(spark, request.file_format, request.table), summary, clock.seconds, [])


@dataclass
class _Write:
    """Writes a table under a name, from this process if it can, else by Spark.

    Attributes:
        df, request, keys, holding, layout: what is written, and how.
        target: finds what takes files of this process under a name.
        wanted: tells the properties of a table of that name.
        token: by which the commit is found again.
        kept: of the table that is replaced.
        guard: called before the table gets the rows.
        beside: the table is made without rows first, under another name.
        summary: its figures, if this process wrote its files.
        made: by what it is told from one that another run makes, if it is made without rows first.
    """

    df: DataFrame
    request: BuildRequest
    keys: list[Key]
    holding: Holding
    layout: Layout
    target: Callable[[TableName], FormatFiles | str]
    wanted: Callable[[TableName], Mapping[str, str]]
    token: str
    kept: Carried
    guard: Callable[[], None] | None = None
    beside: bool = False
    summary: Summary | None = None
    made: str = ""

    def __call__(self, to: TableName) -> None:
        """Write the table."""
        spark, request = self.df.sparkSession, self.request
        find: Find = partial(self.target, to)
        if self.beside:
            self.made = make_empty(self.df, to, request, self.wanted(to))
            find = partial(filled_files, self.df, to, request, self.token, self.made)
        sizes = put_files(spark, self.holding, self.layout, find, self.df.schema, self.check_free)
        if sizes is not None:
            self.summary = _told_by_footers(spark, request, self.keys, sizes)
            return
        self.check_free()
        clustered = apply_layout(self.holding.for_spark, self.layout)
        create(clustered, to, request, self.wanted(to), token=self.token, kept=self.kept)
        self.made = delta_id(spark, to) if self.beside else ""

    def check_free(self) -> None:
        """Find out whether the build is to go on.

        Raises:
            Exception: as ``guard`` does.
        """
        if self.guard is not None:
            self.guard()

    def check_ours(self, to: TableName) -> None:
        """Find out whether what has the name is still what this run wrote.

        Raises:
            BuildError: another run has made a table in its place.
        """
        if self.beside:
            check_made(self.df.sparkSession, to, self.request.table, self.made)


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


def _told_by_footers(
    spark: SparkSession, request: BuildRequest, keys: list[Key], sizes: Mapping[str, int]
) -> Summary | None:
    """Return the same figures of files that this process has just written; None where the format is to tell them."""
    columns = [key.column for key in keys]
    if not has_whole_bounds(request, columns):
        return None
    stats = stats_of_files(spark, sizes, columns, "")
    return None if stats is None else summarize_format(stats, keys)


def measured(
    spark: SparkSession,
    spec: LayoutSpec,
    df: DataFrame,
    info: TableInfo | None,
    request: BuildRequest,
    files: pa.Table | None = None,
) -> LayoutSpec:
    """Take the size of a row from the table as it is, where its format and columns are the same.

    Args:
        spark: the session.
        spec: of the rows to lay out.
        df: the rows.
        info: of the table.
        request: of the model.
        files: bytes and rows of each of its files, where they were just read.
    """
    if info is None or info.provider != request.file_format:
        return spec

    def sizes() -> pa.Table:
        return files if files is not None else sizes_of(state_of(spark, request.file_format, request.table).known([]))

    return with_row_bytes(spec, df, info, sizes)


def _put(spark: SparkSession, request: BuildRequest, info: TableInfo | None, write: _Write) -> None:
    """Let a table be written: beside what has its name if that cannot be replaced by it, or if it is to be so.

    Args:
        spark: the session.
        request: of the model.
        info: of what has the name; None if nothing has.
        write: writes the table.
    """
    table, following = request.table, _following(request.table)
    if not write.beside and _name_of(request, info) == table:
        # of a run that was killed between drop and rename
        if (info is None or request.file_format == "delta") and describe(spark, following) is not None:
            spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
        write(table)
        return
    if info is not None:
        _check_place(spark, request, info)
    spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
    try:
        write(following)
        write.check_ours(following)
        write.check_free()
    except BaseException:
        spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
        raise
    if info is not None and not drop_table(spark, table):
        spark.sql(f"DROP {info.keyword} IF EXISTS {table.sql}")
    try:
        spark.sql(f"ALTER TABLE {following.sql} RENAME TO {table.sql}")
    except Exception:
        if info is None:  # nothing was dropped, and another run was faster
            spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
        raise


def _name_of(request: BuildRequest, info: TableInfo | None) -> TableName:
    """Return under which name a table is written: its own, unless what has that cannot be replaced by it."""
    is_free = info is None or info.provider == request.file_format
    return request.table if is_free else _following(request.table)


def _following(table: TableName) -> TableName:
    return TableName(table.schema, table.identifier + FORMAT_SUFFIX)


def _check_place(spark: SparkSession, request: BuildRequest, info: TableInfo) -> None:
    """Find out whether Spark will rename the new table: a managed one of Delta not to where a folder is already.

    Raises:
        BuildError: it will not, which it would say once the old table is gone.
    """
    table = request.table
    if request.file_format != "delta" or request.location_root:
        return
    place = managed_location(spark, table)
    goes_along = info.kind == "MANAGED" and info.location.rstrip("/").rsplit("/", 1)[-1] == table.identifier.lower()
    if not goes_along and exists(spark, place):
        msg = (
            f"The folder {place} is in the way of {table}, which is to become a {request.file_format} table; nothing "
            "was changed. Move the folder elsewhere, or give the model a location_root."
        )
        raise BuildError(msg)
