"""Drop and rename a z-ordered table together with everything that belongs to it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.catalog import TableInfo, TableName, describe, served_locations
from dbt_zorder.spark.files import delete_empty, has_client
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.tables.parquet.retention.deletions import delete_version
from dbt_zorder.tables.parquet.retention.ownership import Owner, own_versions, served_owner
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.reserved import check_free, drop_helper, is_helper
from dbt_zorder.tables.two_step_swap import following_of, restore_if_interrupted
from dbt_zorder.tables.version import Marker, version_of, write_marker

_LOG = logging.getLogger("dbt_zorder")


def drop_table(spark: SparkSession, table: TableName) -> bool:
    """Drop a table that is served from one of dbt-zorder's versions, with its stats relation and its versions.

    Returns:
        False if the table does not exist or lies elsewhere; then only its stats relation, if any, is dropped.
    """
    restore_if_interrupted(spark, table)
    info = describe(spark, table)
    drop_helper(spark, table, stats_table(table))
    if info is None or not version_of(info.location):
        return False
    owner = _owner(spark, table, info)  # needs the catalog entry, which is dropped next
    own = {} if owner is None else own_versions(spark, owner)
    spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
    drop_helper(spark, table, following_of(table))
    if owner is not None and owner.refused:
        _LOG.warning(
            "%s is dropped, and its files stay: %s %s. Delete them by hand if nothing else needs them.",
            table,
            owner.location,
            owner.refused,
        )
    elif owner is not None:
        _delete_versions(spark, owner, own)
    return True


def _owner(spark: SparkSession, table: TableName, info: TableInfo) -> Owner | None:
    """Return the owner of the version that a table is served from; None if folders cannot be listed."""
    return served_owner(spark, table, info.location) if has_client(spark) else None


def rename_stats(spark: SparkSession, old: TableName, new: TableName) -> None:
    """Rename the stats relation of a renamed table, and renew its versions' markers; the versions stay in place.

    A later table of the old name keeps its versions in the same root. By the markers, each table drops and collects
    only its own.
    """
    stats = describe(spark, stats_table(old))
    if stats is not None and is_helper(spark, old, stats_table(old), stats):
        drop_helper(spark, new, stats_table(new))
        try:
            check_free(spark, new, STATS_SUFFIX)
        except ConfigError as exc:  # the table is renamed already
            _LOG.warning("the stats of %s have no relation: %s", new, exc)
            drop_helper(spark, old, stats_table(old))
        else:
            spark.sql(f"ALTER TABLE {stats_table(old).sql} RENAME TO {stats_table(new).sql}")
    info = describe(spark, new)
    if info is not None and version_of(info.location) and has_client(spark):
        for path, marker in own_versions(spark, served_owner(spark, new, info.location)).items():
            if marker.is_of(old):
                write_marker(spark, path, replace(marker, table=str(new)), renew=True)


def _delete_versions(spark: SparkSession, owner: Owner, own: Mapping[str, Marker]) -> None:
    """Delete the versions of a dropped table, except those that another table is served from."""
    served = served_locations(spark)
    for path in own:
        if version_of(path) not in served:
            delete_version(spark, path)
    for root in owner.roots:
        with contextlib.suppress(Exception):  # the folder contains other files
            delete_empty(spark, root)
