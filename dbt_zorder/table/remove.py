"""Dropping and renaming a z-ordered table, with all that belongs to it."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName, describe, served_locations
from dbt_zorder.table.aside import bring_back, following_of
from dbt_zorder.table.collect import delete_version
from dbt_zorder.table.files import delete_path, has_client, is_empty
from dbt_zorder.table.former_roots import listed_roots
from dbt_zorder.table.stats_relation import stats_table
from dbt_zorder.table.version import is_anothers, read_marker, roots_of, version_of, versions_of, write_marker


def drop_table(spark: SparkSession, table: TableName) -> bool:
    """Drop a table that is served from one of our versions, its stats relation and all its versions.

    Returns:
        False if the table does not exist or lies elsewhere: then only its stats relation, if it has one, is dropped.
    """
    bring_back(spark, table)
    info = describe(spark, table)
    spark.sql(f"DROP TABLE IF EXISTS {stats_table(table).sql}")
    if info is None or not version_of(info.location):
        return False
    spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
    spark.sql(f"DROP TABLE IF EXISTS {following_of(table).sql}")
    if has_client(spark):
        _delete_versions(spark, table, info.location.rstrip("/"))
    return True


def rename_stats(spark: SparkSession, old: TableName, new: TableName) -> None:
    """Let all that belongs to a table follow its new name; the versions stay where they are, with renewed markers.

    Another table of the old name will keep its versions in the same root: by the markers each drops and collects its
    own.
    """
    if describe(spark, stats_table(old)) is not None:
        spark.sql(f"DROP TABLE IF EXISTS {stats_table(new).sql}")
        spark.sql(f"ALTER TABLE {stats_table(old).sql} RENAME TO {stats_table(new).sql}")
    info = describe(spark, new)
    if info is not None and version_of(info.location) and has_client(spark):
        roots = roots_of(info.location, read_marker(spark, info.location))
        for path, marker in [one for root in roots for one in versions_of(spark, root, old)]:
            write_marker(spark, path, replace(marker, table=str(new)), renew=True)


def _delete_versions(spark: SparkSession, table: TableName, location: str) -> None:
    """Delete all versions of a dropped table, but for those that another table is served from.

    A table that was renamed by plain SQL has left its old name in the markers; one that was made over the version of
    another table has never had its own there.
    """
    marker = read_marker(spark, location)
    spared = is_anothers(spark, table, location, marker)
    served = served_locations(spark, table.schema)
    roots, _ = listed_roots(spark, location, marker)
    for root in roots:
        paths = [path for path, _ in versions_of(spark, root, table)]
        if root == roots[0] and marker is not None and location not in paths and not spared:
            paths.append(location)
        for path in paths:
            if version_of(path) not in served:
                delete_version(spark, path)
        if is_empty(spark, root):
            delete_path(spark, root)
