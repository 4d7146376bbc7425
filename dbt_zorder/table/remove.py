"""Dropping and renaming a z-ordered table, with all that belongs to it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName, describe
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.table.files import delete_folder, has_client, is_empty, list_folders
from dbt_zorder.table.version import is_version, read_marker, version_of


def drop_table(spark: SparkSession, table: TableName) -> bool:
    """Drop a table that is served from one of our versions, its stats relation and all its versions.

    Returns:
        False, and nothing is done, if the table does not exist or lies elsewhere.
    """
    info = describe(spark, table)
    if info is None or not version_of(info.location):
        return False
    spark.sql(f"DROP TABLE IF EXISTS {_stats(table).sql}")
    spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
    if has_client(spark):
        root = info.location.rstrip("/").rsplit("/", 1)[0]
        for name in list_folders(spark, root):
            if is_version(name) and read_marker(spark, f"{root}/{name}") is not None:
                delete_folder(spark, f"{root}/{name}")
        if is_empty(spark, root):
            delete_folder(spark, root)
    return True


def rename_stats(spark: SparkSession, old: TableName, new: TableName) -> None:
    """Rename the stats relation of a table that was renamed; the versions stay where they are."""
    if describe(spark, _stats(old)) is not None:
        spark.sql(f"DROP TABLE IF EXISTS {_stats(new).sql}")
        spark.sql(f"ALTER TABLE {_stats(old).sql} RENAME TO {_stats(new).sql}")


def _stats(table: TableName) -> TableName:
    return TableName(table.schema, table.identifier + STATS_SUFFIX)
