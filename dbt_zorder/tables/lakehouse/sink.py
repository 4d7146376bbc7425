"""Files that this process writes for a table of a format, and how the table gets them: whole, or not at all."""

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

from dbt_zorder.engine.choose import Holding, WriterFor
from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.spark.hadoop import open_path
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, written_files

_LOG = logging.getLogger("dbt_zorder")


class FormatFiles(Protocol):
    """A table that is to get files."""

    @property
    def name(self) -> TableName:
        """Its name."""

    @property
    def folder(self) -> str:
        """Where its files go."""

    def writer(self, columns: StructType, blooms: Collection[str]) -> ArrowWriter | str:
        """Return what writes its files as the format would write them; or in a few words why only the format can."""

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the table spells it."""

    def described(self, files: Sequence[WrittenFile]) -> Sequence[Any]:
        """Return files as the table takes them."""

    def commit(self, files: Sequence[Any]) -> None:
        """Let the table have files."""

    def is_refused(self, exc: BaseException) -> bool:
        """Tell whether an error of ``commit`` means for sure that the table has none of the files."""


class EmptyTable(Protocol):
    """How a format makes a table without rows, which gets its files after that."""

    def make(
        self,
        spark: SparkSession,
        table: TableName,
        of: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
    ) -> str:
        """Make a table whose name nothing has, which is to become ``of``, and return its id."""

    def id_of(self, spark: SparkSession, table: TableName) -> str:
        """Return what distinguishes a table from another one that had or will have its name."""

    def filled(
        self, spark: SparkSession, table: TableName, parts: Sequence[str], options: Mapping[str, str]
    ) -> FormatFiles | str:
        """Return the empty table that is to get files; or in a few words why only Spark can write them."""


class Sink(Protocol):
    """The commits to tables of one format that this process makes by the format's own library.

    Whatever it does not do, and all of it without it, Spark's own writer does.
    """

    @property
    def catalog(self) -> str:
        """The class of the format's catalog that stands before Spark's own."""

    @property
    def empty_table(self) -> EmptyTable | None:
        """How a new table is made first, and filled then; None where one commit does both."""

    @property
    def heeds_before(self) -> bool:
        """Whether its commit finds out that others committed since the version ``before``."""

    @property
    def rewrites(self) -> bool:
        """Whether it replaces the files of a table by others of the same rows."""

    def made(
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
    ) -> FormatFiles | str:
        """Return a table that is to be created or replaced, as it will be; or in a few words why only Spark can.

        Args:
            spark: the session.
            table: its name.
            schema: of its rows.
            parts: names of its partition columns.
            properties: of the table, its comment and place among them.
            options: of the writer.
            is_new: there is no table of this format by that name.
            before: the version whose rows are in the query; None if they need not be.
        """

    def standing(
        self,
        spark: SparkSession,
        table: TableName,
        parts: Sequence[str],
        options: Mapping[str, str],
        before: str | None = None,
        *,
        state: FormatState | None = None,
        replaces_parts: bool = False,
    ) -> FormatFiles | str:
        """Return a table that is there and is to get files; or in a few words why only Spark can do that.

        Args:
            spark: the session.
            table: its name.
            parts: names of its partition columns.
            options: of the writer.
            before: the version whose rows these files have, in place of all its files; None if they are added.
            state: of the table, if it was just looked at; None for that of now.
            replaces_parts: they replace all other files of their partitions.
        """


Find: TypeAlias = Callable[[], "FormatFiles | str"]
"""Looks for a table; or tells in a few words why only Spark can write its files."""


def writer_for(find: Find) -> WriterFor:
    """Return what writes the files of a table of a format, which is looked for once it is needed."""
    return lambda columns, blooms: _found(find, columns, blooms)[1]


def put_files(
    spark: SparkSession,
    holding: Holding,
    layout: Layout,
    find: Find,
    columns: StructType,
    guard: Callable[[], None] = lambda: None,
) -> Mapping[str, int] | None:
    """Write rows that are held here into files of a table, and let the table have them.

    Args:
        spark: the session.
        holding: the rows.
        layout: of them.
        find: tells what the table is as of now; what was found when the rows were fetched may have changed.
        columns: of the query.
        guard: called just before the commit; what it raises leaves the table as it is.

    Returns:
        The bytes of each file, by its path; None if there are none, the table is as it was, and Spark is to write the
        rows.

    Raises:
        BuildError: the disk refused, or rows went missing on the way.
        Exception: the format refused the commit.
    """
    if holding.rows is None:
        return None
    files, writer = _found(find, columns, holding.rows.writer.blooms)
    if files is None or isinstance(writer, str):
        _LOG.debug("the rows are written by Spark after all: %s", writer)
        return None
    with _folder(spark, files.folder):
        place = writer.place_of(spark, files.folder)
        try:
            if not replace(holding.rows, writer=writer).write(spark, layout, files.folder):
                return None
            written = written_files(writer.files(), place.path, files.path_of)
            rows = sum(one.footer.num_rows for one in written)
            if rows != layout.rows:
                msg = (
                    f"{layout.rows} rows were laid out for {files.name}, and {rows} are in its files; it is as it was."
                )
                raise BuildError(msg)
            described = files.described(written)
            guard()
        except BaseException:
            _delete(writer.files())
            raise
        try:
            files.commit(described)
        except BaseException as exc:
            if files.is_refused(exc):
                _delete([one.place for one in written])
            raise
    try:
        invalidate_entry(spark, files.name.schema, files.name.identifier)
    except Exception as exc:  # the rows are in: a run that fails now would be run again, and add them twice
        _LOG.warning("the session could not be told that %s has other files: %s", files.name, in_one_line(exc))
    return {one.path: one.size for one in written}


def _found(find: Find, columns: StructType, blooms: Collection[str]) -> tuple[FormatFiles | None, ArrowWriter | str]:
    """Return a table and what writes its files; or in a few words why Spark is to.

    Where the format's own library says something else than we know of, it is to, as well.
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
    """Let a folder be there for a block; of what was made for it, nothing stays that is empty when the block ends."""
    place = on_disk(spark, path)
    missing = [] if place is None else [one for one in _with_parents(place.path) if not one.exists()]
    system, folder = open_path(spark, path)
    system.mkdirs(folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # there is something in it
            for inner, _, _ in os.walk(missing[0], topdown=False) if missing else ():  # of partitions
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
