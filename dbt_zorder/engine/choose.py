"""Chooses where to place the rows of a query: in this process's memory, from a spool on its disk, or in Spark."""

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
from dbt_zorder.engine.local.large_table import SpooledRows
from dbt_zorder.engine.local.memory_budget import MemoryBudget
from dbt_zorder.engine.local.row_estimate import MOST_TEXTS, estimated_row_bytes, most_bytes_of, texts_of
from dbt_zorder.engine.local.small_table import InMemoryRows
from dbt_zorder.engine.local.spool.spool import spool_rows
from dbt_zorder.engine.local.spool.spoolable import can_spool, survives_parquet
from dbt_zorder.engine.parquet.writer import ArrowWriter, are_old, arrow_writer
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import DrawnKeys, KnownKeys
from dbt_zorder.request import BuildRequest, bloom_columns, partition_columns
from dbt_zorder.spark.columns import ResolvedColumn, without
from dbt_zorder.spark.memory import choose_arrow_pool
from dbt_zorder.spark.small_queries import SMALL_BYTES, estimated_bytes

_LOG = logging.getLogger("dbt_zorder")

_BUDGET = MemoryBudget()
_EXPECTED_DIVISOR = 4
"""Divides the byte limit into the bytes reserved for a small query before its rows arrive."""

WriterFor: TypeAlias = Callable[[StructType, Collection[str]], "ArrowWriter | str"]
"""Returns the writer of the files, or the reason why only Spark can write them. Arguments are the columns of a query,
and the names of those with a bloom filter."""


@dataclass
class RowSource:
    """The place that the rows of a query are read from; callers may clear ``known`` once the layout is planned.

    Attributes:
        query: query that returns the rows; if ``copy`` is set, only its columns may be used, as it must not run again.
        rows: rows that this process places and writes; None if Spark does.
        known: keys of the rows, or the number of rows, if either is available before planning.
        copy: function that returns a query over the spooled rows.
    """

    query: DataFrame
    rows: InMemoryRows | SpooledRows | None = None
    known: KnownKeys = None
    copy: Callable[[], DataFrame] | None = None

    @property
    def for_spark(self) -> DataFrame:
        """Return a query over the rows."""
        return self.query if self.copy is None else self.copy()

    @property
    def for_batch_plan(self) -> DataFrame:
        """Return a query to plan a batch by. If there are too many keys to fetch, Spark counts rows in the copy."""
        return self.for_spark if isinstance(self.known, DrawnKeys) else self.query


def as_spark_writes(spark: SparkSession, request: BuildRequest, path: str) -> WriterFor:
    """Return a function that makes the writer of a Parquet table's files.

    Args:
        spark: Spark session.
        request: build request of the table.
        path: folder of the files, or a folder beside it.
    """

    def writer(columns: StructType, blooms: Collection[str]) -> ArrowWriter | str:
        parts = {part.name for part in partition_columns(spark, columns, request)}
        return arrow_writer(spark, without(columns, parts), request.options, path, blooms)

    return writer


@contextlib.contextmanager
def open_rows(staged: Staged, request: BuildRequest, keys: Sequence[Key], files: WriterFor) -> Iterator[RowSource]:
    """Open the rows of a query for the block, in this process if it can place and write them.

    Small scans are fetched. All other queries are spooled to the local disk, if all of Spark runs on this machine.
    Waits until the rows of this process's other threads leave enough memory.

    Args:
        staged: query to read.
        request: build request of the table.
        keys: keys that place the rows.
        files: function that makes the writer of the files.
    """
    parts = partition_columns(staged.query.sparkSession, staged.query.schema, request)
    writer = _writer(staged.query, request, keys, files)
    if isinstance(writer, str):
        _LOG.debug("%s is laid out and written by Spark: %s", request.table, writer)
        yield RowSource(staged.rows)
        return
    choose_arrow_pool()
    with contextlib.ExitStack() as until_written:
        source: RowSource | None = None
        if _is_small(staged):
            source = until_written.enter_context(_fetch_small(staged, request, keys, parts, writer))
        if source is None and _can_spool(staged.query, parts):
            source = until_written.enter_context(_spool_large(staged, request, keys, parts, writer))
        yield source or RowSource(staged.rows)


def _can_spool(query: DataFrame, parts: Sequence[ResolvedColumn]) -> bool:
    """Return whether a query can be spooled, and Spark partitions the spooled rows as it would partition the query."""
    # a folder's name accepts a date that Spark may refuse to write to a file
    return can_spool(query.sparkSession) and survives_parquet(query, [query.schema[part.name] for part in parts])


def _is_small(staged: Staged) -> bool:
    """Return whether a query is estimated to be small enough that fetching it is faster than spooling it."""
    schema = staged.query.schema
    if staged.is_kept or len(texts_of(schema)) > MOST_TEXTS or estimated_row_bytes(schema) is None:
        return False
    estimate = estimated_bytes(staged.query)
    return estimate is not None and estimate <= SMALL_BYTES


@contextlib.contextmanager
def _spool_large(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], parts: Sequence[ResolvedColumn], writer: ArrowWriter
) -> Iterator[RowSource]:
    """Spool the rows of a query, so that it runs only once."""
    plain = None if staged.is_kept else keys
    with spool_rows(staged.query, parts, whole=writer.whole, keys=plain) as copy:
        if copy is None:
            yield RowSource(staged.rows)
        elif not copy.count:
            yield RowSource(copy.rows, known=0)
        else:
            _LOG.debug("%s is laid out and written here, from disk: %d rows", request.table, copy.count)
            rows = SpooledRows(copy, writer, keys, request.in_memory)
            spooled = RowSource(copy.rows) if copy.files.serves_spark else RowSource(copy.query, copy=lambda: copy.rows)
            spooled.rows, size = rows, rows.key_bytes
            if size is None:
                spooled.known = rows.drawn_keys
                yield spooled
                return
            with _BUDGET.reserve(size, rows.most_bytes):
                spooled.known = rows.fetch_keys()
                yield spooled


@contextlib.contextmanager
def _fetch_small(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], parts: Sequence[ResolvedColumn], writer: ArrowWriter
) -> Iterator[RowSource | None]:
    """Fetch the rows of a small scan; yield None if they exceed the estimate, or if Spark must write them."""
    df = staged.rows
    most = most_bytes_of(df.sparkSession, request.in_memory)
    with contextlib.ExitStack() as budget:
        correct = budget.enter_context(_BUDGET.reserve(most // _EXPECTED_DIVISOR, most))
        fetched = fetch(df, keys, most, parts, whole=writer.whole)
        if fetched is not None and are_old(df.sparkSession, fetched.rows):
            _LOG.debug("%s is to be written by Spark, as it has dates of another calendar", request.table)
            fetched = None
        if fetched is None:
            budget.close()  # frees the budget while Spark writes
            yield None
            return
        correct(fetched.rows.nbytes)
        _LOG.debug("%s is laid out and written here: %d rows", request.table, fetched.count)
        yield RowSource(df, InMemoryRows(fetched, writer), fetched)


def _writer(
    df: DataFrame,
    request: BuildRequest,
    keys: Sequence[Key],
    files: WriterFor,
) -> ArrowWriter | str:
    """Return the writer of the files, or the reason why Spark must write them."""
    if not request.in_memory:
        return "zorder_in_memory is never"
    if estimated_row_bytes(df.schema, nested=True) is None:
        return "it has a type that only Spark writes"
    if estimated_row_bytes(StructType([StructField(key.column.name, key.column.data_type) for key in keys])) is None:
        return "a key is of a type that only Spark orders"
    return files(df.schema, [column.name for column in bloom_columns(df, request)])
