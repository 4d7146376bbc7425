"""Implement the interface of tables for plain Parquet, by calls of the other modules of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.store import load_stats
from dbt_zorder.stats.summary import Summary, absent, no_stats, over_all_columns
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.health import FileFacts
from dbt_zorder.tables.parquet import build, file_facts, incremental, rewrite
from dbt_zorder.tables.parquet.guard import as_read
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport, Verified
from dbt_zorder.tables.version import version_of


@dataclass(frozen=True)
class ParquetTable:
    """A table of versions, or any table of another provider; see ``tables.base.Table``.

    Attributes:
        spark, name: the session and the table's name.
        info: catalog description of the name; None if it did not exist or the catalog was not asked.
    """

    spark: SparkSession
    name: TableName
    info: TableInfo | None = None

    @cached_property
    def version(self) -> str | None:
        """The version that the table is served from; None if dbt-zorder did not make it."""
        return (version_of(self.info.location) or None) if self.info is not None else None

    def check(self, df: DataFrame, request: BuildRequest) -> None:
        """Find every error in a request before anything is read or written."""
        check(df, request)

    def guard(self, df: DataFrame) -> Callable[[], None] | None:
        """Return a guard that checks that the table still has the files that ``df`` may have read."""
        if self.info is None or self.version is None or not has_client(self.spark):
            return None
        return as_read(df, self.name, self.info)

    def build(self, df: DataFrame, request: BuildRequest, guard: Callable[[], None] | None = None) -> BuildReport:
        """Build a new version of the table and swap it in."""
        return build.build(self.spark, df, request, guard, self.info)

    def begin(self) -> Mapping[str, int] | None:
        """Complete the batches of failed runs; return bytes of each of the table's files by path."""
        return incremental.begin(self.spark, self.name)

    def increment(
        self,
        query: Callable[[], DataFrame],
        request: BuildRequest,
        batch: Batch,
        how: str = "auto",
        before: Mapping[str, int] | None = None,
    ) -> IncrementReport:
        """Add the rows of a query in place if possible, else in a new version; merge them into a new version."""
        if batch.merge is not None and batch.merge.unique_key:
            return merge_batch(self.spark, query(), request, batch, batch.merge, before)
        return incremental.increment(self.spark, query(), request, batch, before)

    def optimize(self, request: BuildRequest, how: str = "auto", *, dry_run: bool) -> OptimizeReport:
        """Rebuild the table from its own rows, or report what that would do."""
        return rewrite.optimize(self.spark, request, dry_run=dry_run)

    def summary(self) -> Summary:
        """Return the figures of the table from its stats, over every orderable column with stats."""
        try:
            stats = load_stats(self.spark, self.info.location if self.info is not None else "")
        except Exception as exc:
            raise ZorderError(no_stats(self.name)) from exc
        return over_all_columns(stats)

    def facts(self, names: Sequence[str]) -> FileFacts:
        """Return what stats, footers and the listing say of the table's files."""
        if self.info is None:
            raise ZorderError(absent(self.name))
        return file_facts.read_facts(self.spark, self.name, self.info, names)

    def verify(self) -> Verified:
        """Compare the table with its stats, file by file."""
        return verify_table(self.spark, self.name, self.info)
