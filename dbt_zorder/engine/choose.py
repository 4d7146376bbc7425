"""Which way the rows of a query go: held in this process, copied to its disk, or left to Spark."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from dbt_zorder.engine.keep_result import Staged
from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.large_table import CopiedRows
from dbt_zorder.engine.local.memory_budget import Room
from dbt_zorder.engine.local.row_estimate import MOST_TEXTS, most_bytes_of, texts_of, width_of
from dbt_zorder.engine.local.small_table import HeldRows
from dbt_zorder.engine.local.spool import copied
from dbt_zorder.engine.local.spoolable import can_come_back, can_copy
from dbt_zorder.engine.parquet.writer import ArrowWriter, are_old, arrow_writer
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import KnownKeys
from dbt_zorder.request import BuildRequest, bloom_columns, partition_columns
from dbt_zorder.spark.arrow_pool import choose_arrow_pool
from dbt_zorder.spark.columns import ResolvedColumn, without
from dbt_zorder.spark.small_queries import SMALL_BYTES, estimated_bytes

_LOG = logging.getLogger("dbt_zorder")

_ROOM = Room()
_EXPECTED = 4
"""Part of the bytes that rows may take which small files are taken for until their rows are here."""

WriterFor: TypeAlias = Callable[[StructType, Collection[str]], "ArrowWriter | str"]
"""Of the query's columns, and the names of those with a bloom filter: what writes files, or why only Spark can."""


@dataclass
class Holding:
    """Where the rows of a query are; what they are placed by may be forgotten once it has served.

    Attributes:
        source: a query that gives them; where ``copy`` is there, of their columns alone: it is not to be run again.
        rows: them, if they are placed and written here; None if Spark does it.
        known: what they are placed by, or how many they are, if that is known.
        copy: makes a query that gives them.
    """

    source: DataFrame
    rows: HeldRows | CopiedRows | None = None
    known: KnownKeys = None
    copy: Callable[[], DataFrame] | None = None

    @property
    def for_spark(self) -> DataFrame:
        """A query that gives them."""
        return self.source if self.copy is None else self.copy()


def as_spark_writes(spark: SparkSession, request: BuildRequest, path: str) -> WriterFor:
    """Return what writes the files of a Parquet table.

    Args:
        spark: the session.
        request: of the table.
        path: of the folder, or one beside it.
    """

    def writer(columns: StructType, blooms: Collection[str]) -> ArrowWriter | str:
        parts = {part.name for part in partition_columns(spark, columns, request)}
        return arrow_writer(spark, without(columns, parts), request.options, path, blooms)

    return writer


@contextlib.contextmanager
def hold_rows(staged: Staged, request: BuildRequest, keys: Sequence[Key], files: WriterFor) -> Iterator[Holding]:
    """Hold the rows of a query while the block runs, if they can be placed and written from here.

    Those of a small scan are fetched; all others are copied to this machine's disk, if all of Spark runs on it. Waits
    until what other threads of this process hold leaves room.

    Args:
        staged: the query.
        request: what is made of it.
        keys: what rows are placed by.
        files: how they are to be.
    """
    parts = partition_columns(staged.query.sparkSession, staged.query.schema, request)
    writer = _writer(staged.query, request, keys, files)
    if isinstance(writer, str):
        _LOG.debug("%s is laid out and written by Spark: %s", request.table, writer)
        yield Holding(staged.rows)
        return
    choose_arrow_pool()
    with contextlib.ExitStack() as until_written:
        holding: Holding | None = None
        if _is_small(staged):
            holding = until_written.enter_context(_fetched(staged, request, keys, parts, writer))
        if holding is None and _copies(staged.query, parts):
            holding = until_written.enter_context(_copied(staged, request, keys, parts, writer))
        yield holding or Holding(staged.rows)


def _copies(query: DataFrame, parts: Sequence[ResolvedColumn]) -> bool:
    """Tell whether a query can be copied, and Spark still part what is copied as it would part the query."""
    # what stands in a folder's name may be a date that a file may not hold
    return can_copy(query.sparkSession) and can_come_back(query, [query.schema[part.name] for part in parts])


def _is_small(staged: Staged) -> bool:
    """Tell whether a query is taken to be so small that it is fetched sooner than it is copied."""
    schema = staged.query.schema
    if staged.is_kept or len(texts_of(schema)) > MOST_TEXTS or width_of(schema) is None:
        return False
    estimate = estimated_bytes(staged.query)
    return estimate is not None and estimate <= SMALL_BYTES


@contextlib.contextmanager
def _copied(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], parts: Sequence[ResolvedColumn], writer: ArrowWriter
) -> Iterator[Holding]:
    """Copy the rows of a query, and run it no more."""
    plain = None if staged.is_kept else keys
    with copied(staged.query, parts, whole=writer.whole, keys=plain) as copy:
        if copy is None:
            yield Holding(staged.rows)
        elif not copy.count:
            yield Holding(copy.rows, known=0)
        else:
            _LOG.debug("%s is laid out and written here, from disk: %d rows", request.table, copy.count)
            rows = CopiedRows(copy, writer, keys, request.in_memory)
            held = Holding(copy.rows) if copy.files.serves_spark else Holding(copy.query, copy=lambda: copy.rows)
            held.rows, size = rows, rows.key_bytes
            if size is None:
                held.known = rows.drawn_keys
                yield held
                return
            with _ROOM.take(size, rows.most_bytes):
                held.known = rows.fetch_keys()
                yield held


@contextlib.contextmanager
def _fetched(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], parts: Sequence[ResolvedColumn], writer: ArrowWriter
) -> Iterator[Holding | None]:
    """Fetch the rows of a small scan; None where they are more than they were taken for, or Spark is to write them."""
    df = staged.rows
    most = most_bytes_of(df.sparkSession, request.in_memory)
    with contextlib.ExitStack() as room:
        correct = room.enter_context(_ROOM.take(most // _EXPECTED, most))
        fetched = fetch(df, keys, most, parts, whole=writer.whole)
        if fetched is not None and are_old(df.sparkSession, fetched.rows):
            _LOG.debug("%s is to be written by Spark, as it has dates of another calendar", request.table)
            fetched = None
        if fetched is None:
            room.close()  # for as long as Spark writes
            yield None
            return
        correct(fetched.rows.nbytes)
        _LOG.debug("%s is laid out and written here: %d rows", request.table, fetched.count)
        yield Holding(df, HeldRows(fetched, writer), fetched)


def _writer(
    df: DataFrame,
    request: BuildRequest,
    keys: Sequence[Key],
    files: WriterFor,
) -> ArrowWriter | str:
    """Return what writes the files; or in a few words why Spark is to."""
    if not request.in_memory:
        return "zorder_in_memory is never"
    if width_of(df.schema, nested=True) is None:
        return "it has a type that only Spark writes"
    if width_of(StructType([StructField(key.column.name, key.column.data_type) for key in keys])) is None:
        return "a key is of a type that only Spark orders"
    return files(df.schema, [column.name for column in bloom_columns(df, request)])
