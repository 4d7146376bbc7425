"""A table of a lakehouse format, as its callers see it; what is done stands in the other modules of this folder."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.summary import Summary, no_stats, over_all_columns, with_bounds
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.lakehouse import build, incremental, merge_source, rewrite
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.write_table import DropTable
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport, Verified

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class LakehouseTable:
    """A table of Delta Lake or Iceberg; see ``tables.base.Table``.

    Attributes:
        spark, name: the session, and the table's name.
        info: what the catalog said of what has the name; None where there was nothing, or nobody asked.
        drop: drops a table of ours in Parquet, which this one replaces.
    """

    form: ClassVar[Format]
    spark: SparkSession
    name: TableName
    info: TableInfo | None
    drop: DropTable

    @cached_property
    def version(self) -> str | None:
        """Its version when it was first asked for; None if it is none of this format, or cannot be read."""
        if self.info is None or self.info.provider != self.form.name:
            return None
        return self._version_now()

    def check(self, df: DataFrame, request: BuildRequest) -> None:
        """Find all that is wrong with a request before anything is read or written."""
        check(self.form.in_its_types(df, request), request)

    def guard(self, df: DataFrame) -> Callable[[], None] | None:
        """Return what finds out whether the table is still of the version that it had; None if that is unreadable."""
        return None if self.version is None else self._check_version

    def build(self, df: DataFrame, request: BuildRequest, guard: Callable[[], None] | None = None) -> BuildReport:
        """Make or replace the table in one commit; one that was opened is replaced in the version that it had."""
        return build.build(
            self.spark, self.form, df, request, self.drop, info=self.info, before=self.version, guard=guard
        )

    def begin(self) -> Mapping[str, int] | None:
        """Do nothing: no batch is ever left half-done, and the format itself finds out that others commit."""
        return None

    def increment(
        self,
        query: Callable[[], DataFrame],
        request: BuildRequest,
        batch: Batch,
        how: str = "auto",
        before: Mapping[str, int] | None = None,
    ) -> IncrementReport:
        """Add the rows of a query, or let them replace the partitions that they fall in, in one commit."""
        return incremental.increment(self.spark, self.form, query, request, batch, how, self.drop)

    def merge(
        self, sql: str, request: BuildRequest, batch: Batch, how: str, unique_key: Sequence[str] = ()
    ) -> IncrementReport:
        """Run a MERGE, and lay the table out anew if that is due."""
        return incremental.merge(self.spark, self.form, sql, request, batch, how, unique_key)

    def merge_source(self, df: DataFrame, request: BuildRequest, batch: Batch) -> DataFrame:
        """Return the rows of a MERGE in the structs of the table, which gets new fields first."""
        return merge_source.merge_source(self.spark, self.form, df, request, batch, self.drop)

    def rewrite(self, request: BuildRequest, how: str = "auto") -> BuildReport:
        """Lay the table out anew from its own rows, in one commit that changes none of them."""
        return rewrite.rewrite(self.spark, self.form, request, how)

    def optimize(self, request: BuildRequest, how: str = "auto", *, dry_run: bool) -> OptimizeReport:
        """Lay the table out anew, or return what that would do."""
        return rewrite.optimize(self.spark, self.form, request, how, dry_run=dry_run)

    def summary(self) -> Summary:
        """Return the figures by the format's own statistics, over every top-level column that has an order."""
        try:
            columns = [key.column for key in self._ordered()]
            stats = state_of(self.spark, self.form.name, self.name).known(columns)
        except Exception as exc:
            raise ZorderError(no_stats(self.name)) from exc
        return with_bounds(over_all_columns(stats))

    def verify(self) -> Verified:
        """Raise: there is nothing to compare.

        Raises:
            ZorderError: always.
        """
        msg = (
            f"{self.name} is {self.form.name}, which keeps its own statistics: there are none of ours to compare it "
            "with."
        )
        raise ZorderError(msg)

    def _ordered(self) -> list[Key]:
        """Return the keys of the top-level columns that have an order."""
        keys = []
        for column in self.spark.table(self.name.sql).schema.fields:
            with contextlib.suppress(ZorderError):
                keys.append(key_of(ResolvedColumn((column.name,), column.dataType)))
        return keys

    def _version_now(self) -> str | None:
        try:
            return state_of(self.spark, self.form.name, self.name).version
        except Exception as exc:  # whatever is built is better
            _LOG.debug("the version of %s could not be read: %s", self.name, in_one_line(exc))
            return None

    def _check_version(self) -> None:
        if self._version_now() != self.version:
            msg = "Another run has changed the table meanwhile, so that this one was given up and changed nothing."
            raise BuildError(msg)
