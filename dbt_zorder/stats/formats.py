"""The statistics that Delta Lake and Iceberg keep of their files, in the shape of our own stats.

They are read for figures alone: how many files a query will read is what people want to know; each format skips by
itself. Bounds that a format has shortened or does not keep only make these figures larger.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.catalog import TableName
from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.stats.delta_log import delta_stats
from dbt_zorder.stats.iceberg_manifests import iceberg_stats

FORMATS = ("delta", "iceberg")
"""File formats with statistics and an atomic write of their own."""


def format_stats(
    spark: SparkSession, provider: str, table: TableName, columns: Sequence[ResolvedColumn], token: str = ""
) -> DataFrame:
    """Return one row a live data file of a table, of the schema in :mod:`dbt_zorder.stats.schema`.

    Args:
        spark: the session.
        provider: one of ``FORMATS``.
        table: its name.
        columns: top-level columns and struct leaves to return bounds of; NULL where the format keeps none.
        token: of a commit that replaced all files: if it is the last one, it alone need be read.

    Raises:
        Exception: whatever keeps the format's metadata from being read, such as a session without a JVM.
    """
    return delta_stats(spark, table, columns, token) if provider == "delta" else iceberg_stats(spark, table, columns)
