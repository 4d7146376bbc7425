"""The statistics that Delta Lake and Iceberg keep of their files, in the shape of our own stats.

They are read for figures alone: how many files a query will read is what people want to know; each format skips by
itself. Bounds that a format has shortened or does not keep only make these figures larger.
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
"""File formats with statistics and an atomic write of their own."""


class FormatState(Protocol):
    """A table as its format has it at one moment: what is asked of it then agrees, and is looked up but once."""

    @property
    def version(self) -> str:
        """Number of a version of Delta's, id of a snapshot of Iceberg's; empty if there is none."""

    def info(self) -> TableInfo | None:
        """Return what ``describe`` would say of its columns and partitions; None where SQL is to be asked."""

    def stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
        """Return one row a live data file, of the schema in :mod:`dbt_zorder.stats.schema`.

        Args:
            columns: top-level columns and struct leaves to return bounds of; NULL where the format keeps none.
            token: of a commit that replaced all files: if it is the last one, it alone need be read.
        """

    def known(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame | LocalStats:
        """Return the same, from memory where this process can read it by itself."""


def state_of(spark: SparkSession, provider: str, table: TableName) -> FormatState:
    """Return a table as it is now.

    Args:
        spark: the session.
        provider: one of ``FORMATS``.
        table: its name.

    Raises:
        Exception: whatever keeps the format's metadata from being read, such as a session without a JVM.
    """
    return delta_state(spark, table) if provider == "delta" else iceberg_state(spark, table)


def own_state(spark: SparkSession, provider: str, table: TableName) -> FormatState | None:
    """Return the same of a table that is of this format for sure; None where there is doubt, or no such table."""
    try:
        if provider == "delta":  # whose log is there for any folder
            is_own = provider_by_entry(spark, table.schema, table.identifier) == provider
            return delta_state(spark, table) if is_own else None
        return iceberg_state(spark, table) if answers_for(spark, table.schema, ICEBERG_CATALOG) else None
    except Exception as exc:  # none of Iceberg's, or another version
        _LOG.debug("what %s is, is asked by SQL: %s", table, in_one_line(exc))
        return None
