"""Register the relation over a version's stats, for people and tests; pruning readers do not need it."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.catalog import TableName, location_of
from dbt_zorder.spark.catalog_entry import invalidate_entry
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.stats.store import load_stats, stats_path
from dbt_zorder.tables.parquet.swap import Definition, leads_to, publish
from dbt_zorder.tables.reserved import check_free
from dbt_zorder.tables.version import version_of


def publish_stats(spark: SparkSession, table: TableName, path: str, schema: StructType | None = None) -> None:
    """Register the relation over a version's stats.

    If another run has replaced the version meanwhile, that run registers its own.

    Args:
        spark: the session.
        table: name of the table.
        path: folder of the version.
        schema: columns of its stats; read from the folder if None.

    Raises:
        ConfigError: something else made a table of that name.
    """
    if version_of(location_of(spark, table)) != version_of(path):
        return
    check_free(spark, table, STATS_SUFFIX)
    publish(spark, stats_table(table), Definition(schema or load_stats(spark, path).schema), stats_path(path))


def refresh_stats(spark: SparkSession, table: TableName, path: str) -> None:
    """Refresh the session's view of a version's stats; register their relation if it is missing."""
    if leads_to(spark, stats_table(table), stats_path(path)):
        invalidate_entry(spark, table.schema, stats_table(table).identifier)
    else:
        publish_stats(spark, table, path)


def renew_stats(spark: SparkSession, table: TableName, path: str) -> None:
    """Register the relation over a version's stats if a run died between its swap and this step.

    A run without changes makes no version, which would do the same.
    """
    if version_of(path):
        refresh_stats(spark, table, path)


def stats_table(table: TableName) -> TableName:
    """Return the name of a table's stats relation."""
    return TableName(table.schema, table.identifier + STATS_SUFFIX)
