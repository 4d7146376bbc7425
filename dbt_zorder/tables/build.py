"""Write the rows of a query as files of a table: the sequence that all formats share.

It caches the query's result, opens its rows, lays them out, writes them and frees them. A format implements its own
steps as a ``Commit``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from dbt_zorder.engine.choose import RowSource, WriterFor, open_rows
from dbt_zorder.engine.keep_result import Staged, staged
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName

_LOG = logging.getLogger("dbt_zorder")

_MANY_FILES = 10_000
"""Above this number of tasks, a shuffle has a hundred million blocks."""


class Commit(Protocol):
    """One write to one table, implemented by the table's format."""

    @property
    def by_spark(self) -> bool:
        """Whether Spark writes the rows in any case, so that the query need not be inspected."""

    @property
    def counts_first(self) -> bool:
        """Whether a cached query is counted if its number of rows is not available otherwise."""

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Prepare for files; return the clustering columns and the writer of files from this process."""

    def lay_out(self, source: RowSource) -> Layout | None:
        """Return the layout, which assigns each row to a file; None if there is nothing to write."""

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write the rows; a format that commits its writes commits them here.

        Keep no reference to the source after this call: its rows are freed next.
        """

    def settle(self) -> None:
        """Inspect the table after the rows are written and freed, still within the write phase."""


@dataclass(frozen=True)
class Written:
    """The result of a write.

    Attributes:
        layout: layout of the rows.
        counted: query whose rows were counted before the write; None if the counted rows were the written ones.
    """

    layout: Layout
    counted: Staged | None


@contextlib.contextmanager
def written(df: DataFrame, request: BuildRequest, commit: Commit, clock: Clock) -> Iterator[Written | None]:
    """Write the rows of a query. The query's result stays cached for the block; rows in memory are freed.

    Args:
        df: the query.
        request: the settings of the table.
        commit: the format's steps.
        clock: measures the phases query, sample and write.

    Yields:
        The result of the write; None if there was nothing to write.
    """
    with contextlib.ExitStack() as until_done, contextlib.ExitStack() as until_written:
        query, source = None, RowSource(df)
        if not commit.by_spark:
            query = until_done.enter_context(staged(df))
            with clock.phase("query"):
                keys, files = commit.open()
                source = until_written.enter_context(open_rows(query, request, keys, files))
                if source.known is None and commit.counts_first:
                    source.known = query.count_kept()
        with clock.phase("sample"):
            layout = commit.lay_out(source)
            source.known = None  # frees the keys of all rows
        if layout is None:
            yield None
            return
        with clock.phase("write"):
            commit.write(source, layout)
            counted = query if source.rows is None else None
            del source
            until_written.close()
            commit.settle()
        yield Written(layout, counted)


def write(df: DataFrame, request: BuildRequest, commit: Commit, clock: Clock) -> Layout | None:
    """Write the rows of a query as ``written`` does; return their layout, or None if there was nothing to write."""
    with written(df, request, commit, clock) as done:
        return None if done is None else done.layout


def warn_of_many(layout: Layout, table: TableName) -> None:
    """Warn of more tasks than a shuffle handles well: each has one block per task that reads the query."""
    tasks = SparkLayout.beside(layout).tasks
    if tasks > _MANY_FILES:
        _LOG.warning(
            "%s is to be %s files, written by %s tasks of one shuffle: above %s that is slow, and may exhaust the "
            "driver. A larger zorder_file_size, or a smaller zorder_files, makes fewer.",
            table,
            f"{layout.files:,}",
            f"{tasks:,}",
            f"{_MANY_FILES:,}",
        )
