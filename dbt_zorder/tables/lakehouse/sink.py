"""Write files of a lakehouse table in this process, and commit all of them or none."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.engine.choose import RowSource, WriterFor
from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.spark.files import open_path
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, written_files

_LOG = logging.getLogger("dbt_zorder")


class FileTarget(Protocol):
    """A table that receives files."""

    @property
    def name(self) -> TableName:
        """The name of the table."""

    @property
    def folder(self) -> str:
        """The folder of its new files."""

    def writer(self, columns: StructType, blooms: Collection[str]) -> ArrowWriter | str:
        """Return a writer that produces the format's own files, or a short reason why only the format can."""

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the table spells it."""

    def describe_files(self, files: Sequence[WrittenFile]) -> Sequence[Any]:
        """Return the files in the form that the table's commit expects."""

    def commit(self, files: Sequence[Any]) -> None:
        """Commit files to the table."""

    def is_refused(self, exc: BaseException) -> bool:
        """Return whether an error of ``commit`` proves that the table has none of the files."""


class EmptyTable(Protocol):
    """The two steps in which a format creates a table: empty first, files afterwards."""

    def make(
        self,
        spark: SparkSession,
        table: TableName,
        of: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
    ) -> str:
        """Create an empty table under a free name, to be renamed to ``of``, and return its id."""

    def id_of(self, spark: SparkSession, table: TableName) -> str:
        """Return the id that distinguishes a table from earlier or later tables of the same name."""

    def filled_target(
        self, spark: SparkSession, table: TableName, parts: Sequence[str], options: Mapping[str, str]
    ) -> FileTarget | str:
        """Return the empty table as a target of files, or a short reason why only Spark can write them."""


class Sink(Protocol):
    """The commits to tables of one format that this process makes with the format's own library.

    Spark's own writer does whatever a sink cannot, and could replace it entirely.
    """

    @property
    def catalog(self) -> str:
        """The class of the format's catalog that wraps Spark's own."""

    @property
    def empty_table(self) -> EmptyTable | None:
        """The steps that create a new table empty and fill it later; None where one commit does both."""

    @property
    def detects_conflicts(self) -> bool:
        """Whether its commit detects commits after the version ``before``."""

    @property
    def rewrites(self) -> bool:
        """Whether it can replace a table's files by others with the same rows."""

    def build_target(
        self,
        spark: SparkSession,
        table: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
        options: Mapping[str, str],
        *,
        is_new: bool,
        before: str | None,
    ) -> FileTarget | str:
        """Return the table to create or replace as a target of files, or a short reason why only Spark can.

        Args:
            spark: the session.
            table: the name of the table.
            schema: the schema of its rows.
            parts: the names of its partition columns.
            properties: the properties of the table, comment and location among them.
            options: the writer options.
            is_new: whether no table of this format has the name.
            before: the version whose rows are in the query; None if the query need not contain them.
        """

    def existing_target(
        self,
        spark: SparkSession,
        table: TableName,
        parts: Sequence[str],
        options: Mapping[str, str],
        before: str | None = None,
        *,
        state: FormatState | None = None,
        replaces_parts: bool = False,
    ) -> FileTarget | str:
        """Return an existing table as a target of files, or a short reason why only Spark can write them.

        Args:
            spark: the session.
            table: the name of the table.
            parts: the names of its partition columns.
            options: the writer options.
            before: the version whose files are all replaced, with the same rows; None if the files are added.
            state: the state of the table, if it was just read; None to read it now.
            replaces_parts: whether the files replace all other files of their partitions.
        """


FindTarget: TypeAlias = Callable[[], "FileTarget | str"]
"""Finds the target table; returns a short reason if only Spark can write its files."""


def writer_for(find: FindTarget) -> WriterFor:
    """Return a factory of a table's writer, which looks the table up when it is called."""
    return lambda columns, blooms: _builtins(find, columns, blooms)[1]


def write_files(
    spark: SparkSession,
    source: RowSource,
    layout: Layout,
    find: FindTarget,
    columns: StructType,
    guard: Callable[[], None] = lambda: None,
) -> Mapping[str, int] | None:
    """Write rows from this process into files of a table, and commit them.

    Args:
        spark: the session.
        source: the rows.
        layout: the layout of the rows.
        find: a function that looks up the table in its current state, which may differ from the one at the fetch.
        columns: the columns of the query.
        guard: a function called just before the commit; an exception from it leaves the table unchanged.

    Returns:
        The bytes of each file by path. None if this process wrote nothing and the table is unchanged; Spark must then
        write the rows.

    Raises:
        BuildError: the disk failed, or the files lack rows of the layout.
        Exception: the format rejected the commit.
    """
    if source.rows is None:
        return None
    files, writer = _builtins(find, columns, source.rows.writer.blooms)
    if files is None or isinstance(writer, str):
        _LOG.debug("the rows are written by Spark after all: %s", writer)
        return None
    with _folder(spark, files.folder):
        place = writer.place_of(spark, files.folder)
        try:
            if not replace(source.rows, writer=writer).write(spark, layout, files.folder):
                return None
            written = written_files(writer.files(), place.path, files.path_of)
            rows = sum(one.footer.num_rows for one in written)
            if rows != layout.rows:
                msg = (
                    f"{layout.rows} rows were laid out for {files.name}, and {rows} are in its files; it is as it was."
                )
                raise BuildError(msg)
            entries = files.describe_files(written)
            guard()
        except BaseException:
            _delete(writer.files())
            raise
        try:
            files.commit(entries)
        except BaseException as exc:
            if files.is_refused(exc):
                _delete([one.place for one in written])
            raise
    try:
        invalidate_entry(spark, files.name.schema, files.name.identifier)
    except Exception as exc:  # the rows are committed: a retry after a failure would add them twice
        _LOG.warning("the session may still list the old files of %s: %s", files.name, in_one_line(exc))
    return {one.path: one.size for one in written}


def _builtins(
    find: FindTarget, columns: StructType, blooms: Collection[str]
) -> tuple[FileTarget | None, ArrowWriter | str]:
    """Return a table and the writer of its files, or a short reason why Spark must write them.

    Spark also writes them if the format's own library has another API than expected.
    """
    try:
        files = find()
        return (None, files) if isinstance(files, str) else (files, files.writer(columns, blooms))
    except ZorderError:
        raise
    except Exception as exc:
        return None, in_one_line(exc)


@contextlib.contextmanager
def _folder(spark: SparkSession, path: str) -> Iterator[None]:
    """Create a folder for a block, and remove the created folders that are empty at its end."""
    place = on_disk(spark, path)
    missing = [] if place is None else [one for one in _with_parents(place.path) if not one.exists()]
    system, folder = open_path(spark, path)
    system.mkdirs(folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder with files stays
            for inner, _, _ in (
                os.walk(missing[0], topdown=False) if missing else ()
            ):  # partition folders, deepest first
                os.rmdir(inner)
            for made in missing[1:]:
                made.rmdir()


def _with_parents(path: str) -> list[Path]:
    return [Path(path), *Path(path).parents]


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError as exc:
            _LOG.warning("%s could not be deleted, and belongs to no table: %s", path, exc)
