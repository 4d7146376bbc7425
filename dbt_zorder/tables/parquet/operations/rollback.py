"""Serve an earlier version again, by the same single catalog call that completes a build."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError, did_you_mean
from dbt_zorder.spark.catalog import NEXT_SUFFIX, PREVIOUS_SUFFIX, TableName
from dbt_zorder.spark.files import has_client
from dbt_zorder.spark.location import is_same_place
from dbt_zorder.stats.listing import list_data
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.tables.parquet.analyze import analyze_again, analyzed
from dbt_zorder.tables.parquet.buckets.bucket_files import check_ids
from dbt_zorder.tables.parquet.conflicts import check_base, check_served, check_version
from dbt_zorder.tables.parquet.journal import recover_journal
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.ownership import Owner, own_versions, served_owner
from dbt_zorder.tables.parquet.retention.replacements import forget_replaced, note_replaced
from dbt_zorder.tables.parquet.retention.whole_versions import missing_version_message, whole_versions
from dbt_zorder.tables.parquet.rewrite import own_table
from dbt_zorder.tables.parquet.stats_view import publish_stats
from dbt_zorder.tables.parquet.swap import definition_of, publish
from dbt_zorder.tables.reserved import check_free
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import Marker, version_of, write_marker


def rollback(spark: SparkSession, table: TableName, version: str | None = None) -> tuple[str, str]:
    """Serve an earlier version of a table: its rows, columns, partitioning and stats.

    The current version stays and is collected later like any other, so a rollback can be undone.

    Args:
        spark: the session.
        table: name of the table.
        version: name of the version to serve; by default the base of the current version.

    Returns:
        The names of the version served before and of the version served now.

    Raises:
        ZorderError: the version does not exist or is incomplete, or the table is not served from a version of its own.
        BuildError: another run changed the table meanwhile, or the catalog refused.
    """
    restore_if_interrupted(spark, table)
    info = own_table(spark, table, "rolled back")
    if not has_client(spark):
        msg = (
            "zorder_rollback lists folders by the session's own Hadoop client, which neither Spark Connect nor SQL "
            "alone has: run it with a target in dbt's own process."
        )
        raise ZorderError(msg)
    check_free(spark, table, STATS_SUFFIX, NEXT_SUFFIX, PREVIOUS_SUFFIX)
    current = version_of(info.location)
    owner = served_owner(spark, table, info.location)
    if owner.marker is None:
        folders = whole_versions(spark, table, owner.location)
        if version not in folders:
            msg = missing_version_message(spark, table, owner.location, "which is gone")
            raise ZorderError(msg)
    else:
        folders = _versions(spark, owner)
    target = _target(table, current, version, folders)
    path, marker = folders[target]
    definition = definition_of(marker, info.comment, own_properties(spark, table))
    for location in ([] if owner.marker is None else [owner.location]) + [path]:
        recover_journal(spark, location)  # complete the unfinished batches of dead runs in both versions
    check_version(spark, path)
    if marker.buckets:
        check_ids(list_data(spark, path), marker.buckets)
    _renew_roots(spark, owner, path, marker)
    statistics = analyzed(spark, table, info)
    forget_replaced(spark, path)
    publish(spark, table, definition, path, check_base(spark, table, info))
    check_served(spark, table, info, path)
    note_replaced(spark, info.location, target)
    publish_stats(spark, table, path)
    names, partitioned = definition.schema.names, bool(definition.partition_by)
    analyze_again(spark, table, statistics, names, partitioned=partitioned)
    return current, target


def _renew_roots(spark: SparkSession, owner: Owner, path: str, marker: Marker) -> None:
    """Let an older version know the folders that the table has had since: the newer ones are found by it then."""
    root = path.rpartition("/")[0]
    roots = [*marker.former_roots, *owner.roots]
    roots = [
        one for number, one in enumerate(roots) if not any(is_same_place(one, had) for had in (root, *roots[:number]))
    ]
    if roots != marker.former_roots:
        write_marker(spark, path, replace(marker, former_roots=roots), renew=True)


def _versions(spark: SparkSession, owner: Owner) -> dict[str, tuple[str, Marker]]:
    """Return path and marker of a table's own versions, by name.

    Raises:
        ZorderError: the table does not own the version that it is served from.
    """
    if owner.refused:
        msg = (
            f"{owner.table} is served from {owner.location}, which {owner.refused}: it has no versions of its own to "
            "be rolled back to, until a run of its model builds one."
        )
        raise ZorderError(msg)
    return {version_of(path): (path, marker) for path, marker in own_versions(spark, owner).items()}


def _target(table: TableName, current: str, version: str | None, folders: dict[str, tuple[str, Marker]]) -> str:
    others = sorted(set(folders) - {current}, reverse=True)
    if version == current:
        msg = f"{table} is served from {version} already."
        raise ZorderError(msg)
    if version is None and current in folders:
        version = folders[current][1].base
    if version is None or version not in others:
        wanted = f"no version {version}" if version else "no version before the one that is served"
        msg = f"{table} has {wanted}: {'there are ' + ', '.join(others) if others else 'no other one is kept'}."
        msg += did_you_mean(version or "", others)
        raise ZorderError(msg)
    return version
