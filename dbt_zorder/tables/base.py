"""Define the interface of a table, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.health import FileFacts
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport, Verified

Guard = Callable[[], None]
"""Called just before a table is replaced; raises an error to abandon the build."""


class Table(Protocol):
    """A table that exists or is to be created.

    ``tables.registry`` creates instances. ``info`` is the catalog's description from that moment; None if the table did
    not exist or the catalog was not asked. A step that must see later changes asks the catalog again.
    """

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""

    @property
    def name(self) -> TableName:
        """The name of the table."""

    @property
    def info(self) -> TableInfo | None:
        """The catalog's description of the table."""

    @property
    def version(self) -> str | None:
        """Its version when this property was first read; None if it has no readable version."""

    def check(self, df: DataFrame, request: BuildRequest) -> None:
        """Find every error in a request before anything is read or written.

        Raises:
            ColumnError, ConfigError: the request does not fit the query.
        """

    def guard(self, df: DataFrame) -> Guard | None:
        """Return a guard that checks that the table still matches what ``df`` may have read; None without one.

        Raises:
            BuildError: ``df`` reads the table from before files that exist now were added.
        """

    def build(self, df: DataFrame, request: BuildRequest, guard: Guard | None = None) -> BuildReport:
        """Create or replace the table from the rows of a query; see the ``build`` of each format."""

    def begin(self) -> Mapping[str, int] | None:
        """Complete the work of a failed run, before a batch's query is analysed.

        Returns:
            Bytes of each file by path; None if the format itself detects concurrent commits.
        """

    def increment(
        self,
        query: Callable[[], DataFrame],
        request: BuildRequest,
        batch: Batch,
        how: str = "auto",
        before: Mapping[str, int] | None = None,
    ) -> IncrementReport:
        """Add the rows of a query, or replace the partitions that contain them.

        Args:
            query: function that analyses the query.
            request: the model's settings.
            batch: how the rows are added.
            how: the model's ``zorder_optimize``; selects how a due rewrite is done.
            before: return value of ``begin``.
        """

    def optimize(self, request: BuildRequest, how: str = "auto", *, dry_run: bool) -> OptimizeReport:
        """Rebuild the table from its own rows, or report what that would do."""

    def summary(self) -> Summary:
        """Return the figures of the table from its stats, over every orderable column with stats.

        Raises:
            ZorderError: the table has no readable stats.
        """

    def facts(self, names: Sequence[str]) -> FileFacts:
        """Return what statistics, footers and the listing say of the table's files.

        Args:
            names: columns to examine; by default those that the table itself says it is clustered by.

        Raises:
            ZorderError: the relation has no files, or another format.
            ColumnError, ConfigError: a column is unknown, ambiguous, or cannot be examined.
        """

    def verify(self) -> Verified:
        """Compare the table with the stats that dbt-zorder keeps of it.

        Raises:
            ZorderError: the table has no such stats, or its format keeps its own.
        """
