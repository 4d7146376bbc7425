"""Write a Delta Lake or Iceberg table under its own name, or beside a table that it cannot replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import RowSource
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableInfo, TableName, managed_location
from dbt_zorder.spark.files import exists
from dbt_zorder.stats.footers import stats_of_files
from dbt_zorder.stats.summary import Summary, summarize_format
from dbt_zorder.tables.lakehouse.format import Format, KeptProperties
from dbt_zorder.tables.lakehouse.sink import EmptyTable, FileTarget, FindTarget, write_files
from dbt_zorder.tables.lakehouse.spark_writer import create
from dbt_zorder.tables.lakehouse.targets import check_made, filled_target, make_empty
from dbt_zorder.tables.opened import check_readable
from dbt_zorder.tables.reserved import check_free, drop_helper, mark_folder, unmark_folder

DropTable: TypeAlias = Callable[[SparkSession, TableName], bool]
"""Drops a Parquet table of ours with its versions; returns False if the table is not ours."""


@dataclass
class TableWrite:
    """A write of a table under a name, by this process if possible, otherwise by Spark.

    Attributes:
        form: the format of the table.
        df, request, keys, source, layout: the query, the settings, the clustering keys, the rows and their layout.
        target: a function that returns the target of files under a name.
        wanted: a function that returns the table's properties under a name.
        token: the text that identifies the commit in the log.
        kept: the properties that survive from the replaced table.
        guard: a function called before the table gets the rows.
        beside: the steps that create the table empty under another name; None to write it at once.
        summary: the figures of the table, if this process wrote its files.
        made: the id that distinguishes the table from one of another run, if it was created empty.
    """

    form: Format
    df: DataFrame
    request: BuildRequest
    keys: list[Key]
    source: RowSource
    layout: Layout
    target: Callable[[TableName], FileTarget | str]
    wanted: Callable[[TableName], Mapping[str, str]]
    token: str
    kept: KeptProperties
    guard: Callable[[], None] | None = None
    beside: EmptyTable | None = None
    summary: Summary | None = None
    made: str = ""

    def __call__(self, to: TableName) -> None:
        """Write the table."""
        spark, request = self.df.sparkSession, self.request
        find: FindTarget = partial(self.target, to)
        if self.beside is not None:
            self.made = make_empty(self.beside, self.df, to, request, self.wanted(to))
            mark_folder(spark, request.table, to)
            find = partial(filled_target, self.form, self.beside, self.df, to, request, self.token, self.made)
        sizes = write_files(spark, self.source, self.layout, find, self.df.schema, self.check_free)
        if sizes is not None:
            self.summary = _footer_summary(spark, self.form, request, self.keys, sizes)
            return
        self.check_free()
        clustered = apply_layout(self.source.for_spark, self.layout)
        create(self.form, clustered, to, request, self.wanted(to), token=self.token, kept=self.kept)
        self.made = self.beside.id_of(spark, to) if self.beside is not None else ""

    def check_free(self) -> None:
        """Call the guard, which raises if the build must stop.

        Raises:
            Exception: the guard abandons the build.
        """
        if self.guard is not None:
            self.guard()

    def check_ours(self, to: TableName) -> None:
        """Check that the table of a name is still the one that this run wrote.

        Raises:
            BuildError: another run created a table in its place.
        """
        if self.beside is not None:
            check_made(self.beside, self.df.sparkSession, to, self.request.table, self.made)


def put_table(
    spark: SparkSession, request: BuildRequest, info: TableInfo | None, write: TableWrite, drop: DropTable
) -> None:
    """Write a table, under another name first if it cannot replace the existing one or is created empty.

    Args:
        spark: the session.
        request: the settings of the model.
        info: the catalog's entry under the table's name; None if the name is free.
        write: the write of the table.
        drop: a function that drops a Parquet table of ours.
    """
    table, following = request.table, _following(request.table)
    if write.beside is None and written_name(request, info) == table:
        # left by a run that was killed between drop and rename
        if info is None or write.form.sink.empty_table is not None:
            drop_helper(spark, table, following)
        write(table)
        return
    if info is not None:
        _check_place(spark, write.form, request, info)
    check_free(spark, table, FORMAT_SUFFIX)
    drop_helper(spark, table, following)
    try:
        write(following)
        if write.beside is None:
            mark_folder(spark, table, following)
        write.check_ours(following)
        write.check_free()
    except BaseException:
        spark.sql(f"DROP TABLE IF EXISTS {following.sql}")  # nothing had the name before
        raise
    if info is not None and not drop(spark, table):
        spark.sql(f"DROP {info.keyword} IF EXISTS {table.sql}")
    try:
        spark.sql(f"ALTER TABLE {following.sql} RENAME TO {table.sql}")
    except Exception:
        if info is None:  # nothing was dropped, and another run was faster
            spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
        raise
    unmark_folder(spark, table)
    check_readable(spark, table, f"was written as {following} and renamed")


def written_name(request: BuildRequest, info: TableInfo | None) -> TableName:
    """Return the name under which a table is written: its own, unless it cannot replace the existing table."""
    is_free = info is None or info.provider == request.file_format
    return request.table if is_free else _following(request.table)


def _following(table: TableName) -> TableName:
    return TableName(table.schema, table.identifier + FORMAT_SUFFIX)


def _check_place(spark: SparkSession, form: Format, request: BuildRequest, info: TableInfo) -> None:
    """Check that Spark can rename the new table: it renames no managed Delta table to an existing folder.

    Raises:
        BuildError: the folder exists. Spark would raise only after the old table is gone.
    """
    table = request.table
    if not form.moves_folders or request.location_root:
        return
    place = managed_location(spark, table)
    goes_along = info.kind == "MANAGED" and info.location.rstrip("/").rsplit("/", 1)[-1] == table.identifier.lower()
    if not goes_along and exists(spark, place):
        msg = (
            f"The folder {place} is in the way of {table}, which is to become a {request.file_format} table; nothing "
            "was changed. Move the folder elsewhere, or give the model a location_root."
        )
        raise BuildError(msg)


def _footer_summary(
    spark: SparkSession, form: Format, request: BuildRequest, keys: list[Key], sizes: Mapping[str, int]
) -> Summary | None:
    """Summarize the footers of files that this process just wrote; None where the format's own bounds differ."""
    columns = [key.column for key in keys]
    if not form.has_whole_bounds(request, columns):
        return None
    stats = stats_of_files(spark, sizes, columns, "")
    return None if stats is None else summarize_format(stats, keys)
