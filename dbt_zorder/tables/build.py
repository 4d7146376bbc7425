"""The sequence by which the rows of a query become files of a table, in any format, whole or batch by batch.

Keep the query's result, open its rows, lay them out, write them, free them. What a format does otherwise than the
others is its ``Commit``.
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
"""Beyond so many, a shuffle has a hundred million blocks."""


class Commit(Protocol):
    """One write to one table, as its format carries it out."""

    @property
    def by_spark(self) -> bool:
        """Whether Spark writes the rows in any case, so that nothing is to be found out about the query."""

    @property
    def counts_first(self) -> bool:
        """Whether a query whose result is kept runs for its count, where nothing else says how many rows it has."""

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Get ready for files; return the clustering columns, and what writes files from this process."""

    def lay_out(self, holding: RowSource) -> Layout | None:
        """Return which row goes into which file; None where nothing is to be written."""

    def write(self, holding: RowSource, layout: Layout) -> None:
        """Write the rows; a format that commits what it writes commits them here.

        The holding must not outlive this call: its rows are freed next.
        """

    def settle(self) -> None:
        """Look at the table once the rows are written and freed, still in the phase of the write."""


@dataclass(frozen=True)
class Written:
    """Rows that were written.

    Attributes:
        layout: by which they were.
        counted: the query whose rows were counted before; None where these were the very rows that were written.
    """

    layout: Layout
    counted: Staged | None


@contextlib.contextmanager
def written(df: DataFrame, request: BuildRequest, commit: Commit, clock: Clock) -> Iterator[Written | None]:
    """Write the rows of a query; the query's result is kept while the block runs, the rows in memory are not.

    Args:
        df: the query.
        request: of the table.
        commit: what its format does.
        clock: counts the phases query, sample and write.

    Returns:
        What was written; None where nothing was to be.
    """
    with contextlib.ExitStack() as until_done, contextlib.ExitStack() as until_written:
        query, holding = None, RowSource(df)
        if not commit.by_spark:
            query = until_done.enter_context(staged(df))
            with clock.phase("query"):
                keys, files = commit.open()
                holding = until_written.enter_context(open_rows(query, request, keys, files))
                if holding.known is None and commit.counts_first:
                    holding.known = query.count_kept()
        with clock.phase("sample"):
            layout = commit.lay_out(holding)
            holding.known = None  # the keys of all rows
        if layout is None:
            yield None
            return
        with clock.phase("write"):
            commit.write(holding, layout)
            counted = query if holding.rows is None else None
            del holding
            until_written.close()
            commit.settle()
        yield Written(layout, counted)


def write(df: DataFrame, request: BuildRequest, commit: Commit, clock: Clock) -> Layout | None:
    """Write the rows of a query as ``written`` does; return their layout, None where nothing was to be written."""
    with written(df, request, commit, clock) as done:
        return None if done is None else done.layout


def warn_of_many(layout: Layout, table: TableName) -> None:
    """Warn of more tasks than a shuffle takes well: each has a block of every task that reads the query."""
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
