"""Implement ``tables.base.Table`` for lakehouse formats, on top of the other modules of this folder."""

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
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.summary import Summary, drop_unbounded, gather, no_stats, over_all_columns, rows_by_folder
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.health import FileFacts
from dbt_zorder.tables.lakehouse import build, incremental, merge_source, rewrite
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.write_table import DropTable
from dbt_zorder.tables.report import BuildReport, IncrementReport, OptimizeReport, Verified

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class LakehouseTable:
    """A Delta Lake or Iceberg table; see ``tables.base.Table``.

    Attributes:
        spark, name: the session, and the table's name.
        info: the catalog's entry under the name; None if there is none, or it was not read.
        drop: a function that drops a Parquet table of ours, which this table replaces.
    """

    form: ClassVar[Format]
    spark: SparkSession
    name: TableName
    info: TableInfo | None
    drop: DropTable

    @cached_property
    def version(self) -> str | None:
        """The version at the first access; None if the table has another format, or its version cannot be read."""
        if self.info is None or self.info.provider != self.form.name:
            return None
        return self._version_now()

    def check(self, df: DataFrame, request: BuildRequest) -> None:
        """Raise every error of a request before anything is read or written."""
        check(self.form.convert_types(df, request), request)

    def guard(self, df: DataFrame) -> Callable[[], None] | None:
        """Return a function that checks that the table still has its version; None if that is unreadable."""
        return None if self.version is None else self._check_version

    def build(self, df: DataFrame, request: BuildRequest, guard: Callable[[], None] | None = None) -> BuildReport:
        """Create the table, or replace it at the version at which it was opened, in one commit."""
        return build.build(
            self.spark, self.form, df, request, self.drop, info=self.info, before=self.version, guard=guard
        )

    def begin(self) -> Mapping[str, int] | None:
        """Do nothing: a batch is never left half-done, and the format itself detects concurrent commits."""
        return None

    def increment(
        self,
        query: Callable[[], DataFrame],
        request: BuildRequest,
        batch: Batch,
        how: str = "auto",
        before: Mapping[str, int] | None = None,
    ) -> IncrementReport:
        """Add a query's rows, or replace the partitions of these rows, in one commit."""
        return incremental.increment(self.spark, self.form, query, request, batch, how, self.drop)

    def merge(
        self, sql: str, request: BuildRequest, batch: Batch, how: str, unique_key: Sequence[str] = ()
    ) -> IncrementReport:
        """Run a MERGE, and rewrite the table's layout if that is due."""
        return incremental.merge(self.spark, self.form, sql, request, batch, how, unique_key)

    def merge_source(self, df: DataFrame, request: BuildRequest, batch: Batch) -> DataFrame:
        """Add new fields to the table's structs, and return the rows of a MERGE in its structs."""
        return merge_source.merge_source(self.spark, self.form, df, request, batch, self.drop)

    def rewrite(self, request: BuildRequest, how: str = "auto") -> BuildReport:
        """Rewrite the table's layout from its own rows, in one commit that changes no row."""
        return rewrite.rewrite(self.spark, self.form, request, how)

    def optimize(self, request: BuildRequest, how: str = "auto", *, dry_run: bool) -> OptimizeReport:
        """Rewrite the table's layout, or report the effect of a rewrite."""
        return rewrite.optimize(self.spark, self.form, request, how, dry_run=dry_run)

    def summary(self) -> Summary:
        """Return the figures over every sortable top-level column, from the format's own statistics."""
        try:
            columns = [key.column for key in self._ordered()]
            stats = state_of(self.spark, self.form.name, self.name).load_stats(columns)
        except Exception as exc:
            raise ZorderError(no_stats(self.name)) from exc
        return drop_unbounded(over_all_columns(stats))

    def facts(self, names: Sequence[str]) -> FileFacts:
        """Return what the format's metadata say of the table's files; only ``names`` are examined."""
        df, parts = self.spark.table(self.name.sql), self.info.partition_columns if self.info is not None else ()
        keys = keys_for(df, LayoutSpec(by=list(names), partition_by=list(parts))) if names else []
        try:
            state = state_of(self.spark, self.form.name, self.name)
            files = gather(state.load_stats([key.column for key in keys]), keys, with_nulls=True)
        except Exception as exc:
            raise ZorderError(no_stats(self.name)) from exc
        built = self.form.last_whole_layout(state)
        partitions = max(1, len(rows_by_folder(files)))
        columns = [key.column.sql for key in keys]
        command = self.form.rewrite_statement(self.name, columns) if keys else ""
        return FileFacts(files, keys, built, partitions, command=command)

    def verify(self) -> Verified:
        """Raise: a lakehouse table has no stats of ours to compare.

        Raises:
            ZorderError: always.
        """
        msg = (
            f"{self.name} is {self.form.name}, which keeps its own statistics: there are none of ours to compare it "
            "with."
        )
        raise ZorderError(msg)

    def _ordered(self) -> list[Key]:
        """Return the keys of the sortable top-level columns."""
        keys = []
        for column in self.spark.table(self.name.sql).schema.fields:
            with contextlib.suppress(ZorderError):
                keys.append(key_of(ResolvedColumn((column.name,), column.dataType)))
        return keys

    def _version_now(self) -> str | None:
        try:
            return state_of(self.spark, self.form.name, self.name).version
        except Exception as exc:  # an unreadable table does not block the build that replaces it
            _LOG.debug("the version of %s could not be read: %s", self.name, in_one_line(exc))
            return None

    def _check_version(self) -> None:
        if self._version_now() != self.version:
            msg = "Another run has changed the table meanwhile, so that this one was given up and changed nothing."
            raise BuildError(msg)
