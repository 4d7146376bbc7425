"""Read the statistics that Delta Lake and Iceberg keep of their files, in the shape of our own stats.

They serve only to report how many files a query will read; each format skips files by itself. Bounds that a format
truncates or omits only raise these figures.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.catalog_entry import ICEBERG_CATALOG, answers_for, provider_by_entry
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.stats.iceberg.manifests import iceberg_state

_LOG = logging.getLogger("dbt_zorder")

FORMATS = ("delta", "iceberg")
"""File formats with statistics and an atomic commit of their own."""


class FormatState(Protocol):
    """The state of a table in its format's metadata at one moment, read once so that all answers agree."""

    @property
    def version(self) -> str:
        """The number of a Delta version, or the id of an Iceberg snapshot; empty if there is none."""

    def info(self) -> TableInfo | None:
        """Return the columns and partitions as ``describe`` would; None where only SQL can describe them."""

    def stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
        """Return one row a live data file, with the schema of :mod:`dbt_zorder.stats.schema`.

        Args:
            columns: the top-level columns and struct leaves with bounds; NULL where the format keeps none.
            token: the token of a commit that replaced all files. If it is the last commit, only that commit is read.
        """

    def load_stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame | LocalStats:
        """Return the same, from memory where this process can read it itself."""


def state_of(spark: SparkSession, provider: str, table: TableName) -> FormatState:
    """Return the current state of a table.

    Args:
        spark: the session.
        provider: one of ``FORMATS``.
        table: the name of the table.

    Raises:
        Exception: the format's metadata cannot be read, for example because the session has no JVM.
    """
    return delta_state(spark, table) if provider == "delta" else iceberg_state(spark, table)


def own_state(spark: SparkSession, provider: str, table: TableName) -> FormatState | None:
    """Return the same for a table that certainly has this format; None in doubt, or without such a table."""
    try:
        if provider == "delta":  # Delta's API returns a log for any folder
            is_own = provider_by_entry(spark, table.schema, table.identifier) == provider
            return delta_state(spark, table) if is_own else None
        return iceberg_state(spark, table) if answers_for(spark, table.schema, ICEBERG_CATALOG) else None
    except Exception as exc:  # not an Iceberg table, or another version of Iceberg
        _LOG.debug("what %s is, is asked by SQL: %s", table, in_one_line(exc))
        return None
