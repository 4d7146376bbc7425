"""A table of any format: what its callers may ask of it, and nothing of how the format does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport, Verified

Guard = Callable[[], None]
"""Called just before a table is replaced; raises where the build is to be abandoned."""


class Table(Protocol):
    """A table that is there, or is to be.

    ``tables.registry`` makes one. ``info`` is what the catalog said of it then; None where there was none, or nobody
    asked. A step that must know of changes since then asks the catalog again.
    """

    @property
    def spark(self) -> SparkSession:
        """The session."""

    @property
    def name(self) -> TableName:
        """The name of the table."""

    @property
    def info(self) -> TableInfo | None:
        """What the catalog said of it."""

    @property
    def version(self) -> str | None:
        """Its version when it was first asked for; None if there is none that can be read."""

    def check(self, df: DataFrame, request: BuildRequest) -> None:
        """Find all that is wrong with a request before anything is read or written.

        Raises:
            ColumnError, ConfigError: the request does not fit the query.
        """

    def guard(self, df: DataFrame) -> Guard | None:
        """Return what finds out whether the table is still what ``df`` may have read; None where nothing does.

        Raises:
            BuildError: ``df`` reads it as it was before files came that are there now.
        """

    def build(self, df: DataFrame, request: BuildRequest, guard: Guard | None = None) -> BuildReport:
        """Make the table of the rows of a query, or replace it by them; see the ``build`` of each format."""

    def begin(self) -> Mapping[str, int] | None:
        """Complete what a failed run left, before a batch's query is analysed; return bytes of the files by path.

        None where the format itself finds out that others commit.
        """

    def increment(
        self,
        query: Callable[[], DataFrame],
        request: BuildRequest,
        batch: Batch,
        how: str = "auto",
        before: Mapping[str, int] | None = None,
    ) -> IncrementReport:
        """Add the rows of a query, or let them replace the partitions that they fall in.

        Args:
            query: analyses the query.
            request: the model's settings.
            batch: how its rows go in.
            how: ``zorder_optimize`` of the model, by which a rewrite that is due is done.
            before: what ``begin`` returned.
        """

    def optimize(self, request: BuildRequest, how: str = "auto", *, dry_run: bool) -> OptimizeReport:
        """Build the table anew from its own rows, or return what that would do."""

    def summary(self) -> Summary:
        """Return the figures of the table as its stats have them, over every column that has stats and an order.

        Raises:
            ZorderError: it has none that can be read.
        """

    def verify(self) -> Verified:
        """Compare the table with the stats that we keep of it.

        Raises:
            ZorderError: it has none, or is of a format that keeps its own.
        """
