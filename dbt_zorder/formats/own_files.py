"""Files that this process writes for a table of a format, and how the table gets them: whole, or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.catalog import TableName
from dbt_zorder.formats.iceberg_files import staged_files, standing_files
from dbt_zorder.hadoop import open_path
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark_message import in_one_line
from dbt_zorder.table.arrow_files import ArrowWriter
from dbt_zorder.table.holding import Holding, WriterFor

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

    def described(self, paths: Sequence[str], rows: int) -> Sequence[Any]:
        """Return files as the table takes them, which have so many rows together."""

    def commit(self, files: Sequence[Any]) -> None:
        """Let the table have files."""

    def is_refused(self, exc: BaseException) -> bool:
        """Tell whether an error of ``commit`` means for sure that the table has none of the files."""


def to_be_made(
    spark: SparkSession,
    file_format: str,
    table: TableName,
    schema: StructType,
    properties: Mapping[str, str],
    told: Mapping[str, str],
) -> FormatFiles | str:
    """Return a table that is to be created, or replaced, as it will be; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        file_format: of the table.
        table: its name.
        schema: of its rows.
        properties: of the table.
        told: what its commit is to say besides.
    """
    if file_format != "iceberg":
        return f"only {file_format} itself commits files"
    return _or_why(lambda: staged_files(spark, table, schema, properties, told))


def to_be_added_to(
    spark: SparkSession, file_format: str, table: TableName, told: Mapping[str, str], before: str | None = None
) -> FormatFiles | str:
    """Return a table that is there, which is to get files; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        file_format: of the table.
        table: its name.
        told: what the commit is to say besides.
        before: the version whose rows these files have, which take the place of all; None if they are added.
    """
    if file_format != "iceberg":
        return f"only {file_format} itself commits files"
    return _or_why(lambda: standing_files(spark, table, told, before))


def writer_for(files: FormatFiles | str) -> WriterFor:
    """Return what writes the files of a table of a format."""
    return lambda columns, blooms: files if isinstance(files, str) else files.writer(columns, blooms)


def put_files(
    spark: SparkSession, holding: Holding, layout: Layout, files: FormatFiles | str
) -> Mapping[str, int] | None:
    """Write rows that are held here into files of a table, and let the table have them.

    Args:
        spark: the session.
        holding: the rows.
        layout: of them.
        files: what the table is as of now; what was found when the rows were fetched may have changed.

    Returns:
        The bytes of each file, by its path; None if there are none, the table is as it was, and Spark is to write the
        rows.

    Raises:
        BuildError: the disk refused, or rows went missing on the way.
        Exception: the format refused the commit.
    """
    if holding.rows is None:
        return None
    if isinstance(files, str):
        _LOG.debug("the rows are written by Spark after all: %s", files)
        return None
    old = holding.rows.writer
    writer = files.writer(StructType.fromJson(holding.source.schema.jsonValue()), old.blooms)
    if isinstance(writer, str):
        _LOG.debug("the rows are written by Spark after all: %s", writer)
        return None
    system, folder = open_path(spark, files.folder)
    system.mkdirs(folder)
    place = writer.place_of(spark, files.folder)
    try:
        if not replace(holding.rows, writer=writer).write(spark, layout, files.folder):
            return None
        written = writer.files_in(place)
        sizes = {f"{files.folder}/{os.path.basename(path)}": os.path.getsize(path) for path in written}
        described = files.described(list(sizes), layout.rows)
    except BaseException:
        _delete(writer.files_in(place))
        raise
    try:
        files.commit(described)
    except BaseException as exc:
        if files.is_refused(exc):
            _delete(written)
        raise
    try:
        spark.catalog.refreshTable(files.name.sql)
    except Exception as exc:  # the rows are in: a run that fails now would be run again, and add them twice
        _LOG.warning("the session could not be told that %s has other files: %s", files.name, in_one_line(exc))
    return sizes


def _or_why(find: Callable[[], FormatFiles | str]) -> FormatFiles | str:
    """Return what is found; where the format's own library says something else than we know of, Spark is to write."""
    try:
        return find()
    except Exception as exc:
        return in_one_line(exc)


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError as exc:
            _LOG.warning("%s could not be deleted, and belongs to no table: %s", path, exc)
