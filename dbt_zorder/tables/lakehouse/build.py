"""One build of a table in Delta Lake or Iceberg: clustered, and committed as a whole by the format."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import hold_rows
from dbt_zorder.engine.file_size import sized_here
from dbt_zorder.engine.keep_result import staged
from dbt_zorder.engine.row_bytes import by_version_before
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.plan import make_plan
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableInfo, TableName, describe
from dbt_zorder.stats.store import sizes_of
from dbt_zorder.stats.summary import Summary, summarize_format
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.delta.kept_properties import NOTHING, Carried
from dbt_zorder.tables.lakehouse.history import version_of
from dbt_zorder.tables.lakehouse.lost_commits import check_lost
from dbt_zorder.tables.lakehouse.properties import forget_columns, table_properties
from dbt_zorder.tables.lakehouse.sink import FormatFiles, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import check_session, made_files
from dbt_zorder.tables.lakehouse.types import as_kept
from dbt_zorder.tables.lakehouse.write_table import TableWrite, name_of, put_table
from dbt_zorder.tables.parquet.build import BuildReport, warn_of_many
from dbt_zorder.tables.parquet.reserved import check_free


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
    check_free(spark, request.table, FORMAT_SUFFIX)
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
            files = writer_for(partial(target, name_of(request, info)))
            holding = until_written.enter_context(hold_rows(held, request, keys, files))
        with clock.phase("sample"):
            spec = measured(spark, request.spec, df, info, request)
            told = spec if holding.rows is None else holding.rows.with_row_bytes(spec)
            layout = sized_here(holding, make_plan(holding.source, told, holding.known), spec)
            holding.known = None  # the keys of all rows
            if holding.rows is None:
                warn_of_many(layout, request.table)
        with clock.phase("write"):
            if before is not None:
                _check_version(spark, request, before)
            write = TableWrite(df, request, keys, holding, layout, target, wanted, token, kept, guard)
            # a new Delta table is made without rows, gets its files, and then its name: no reader sees it without them
            write.beside = holding.rows is not None and is_new and request.file_format == "delta"
            put_table(spark, request, info, write)
            del write.holding, holding
            until_written.close()
            # a commit of this process to Delta has found out by itself
            if before is not None and (write.summary is None or request.file_format != "delta"):
                check_lost(spark, request.file_format, request.table, before, token)
            forget_columns(spark, request, df.schema)
    with clock.phase("stats"):
        summary = write.summary or summary_of(spark, request, keys, token)
    return BuildReport(version_of(spark, request.file_format, request.table), summary, clock.seconds, [])


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

    return by_version_before(spec, df, info, sizes)
