"""The data files of a version, as Spark sees them: what is hidden from readers is not among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.listing import list_data
from dbt_zorder.tables.parquet.journal import Entry, ready_entries
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")


def check_unchanged(spark: SparkSession, table: TableName, before: Mapping[str, int] | None) -> None:
    """Do what ``check_same_files`` does for wherever a table is served from; nothing if its files were not known.

    Raises:
        BuildError: as ``check_same_files``.
    """
    info = describe(spark, table)
    if before is not None and info is not None:
        check_same_files(spark, info.location, before, str(table))


def watch(spark: SparkSession, table: TableName, base: TableInfo | None) -> Callable[[], None]:
    """Return what finds out, before a table's version is replaced, whether another run added to it since this call.

    Nothing is found of a table that is none of ours, nor over Spark Connect, where each batch is a new version.
    """
    if base is None or not version_of(base.location) or not has_client(spark):
        return lambda: None
    location = base.location
    try:
        before = list_data(spark, location)
    except Exception as exc:  # its folder is gone: whatever is built is better
        _LOG.debug("the files of %s before this build could not be listed: %s", table, exc)
        return lambda: None
    pending = ready_entries(spark, location)
    return lambda: check_same_files(spark, location, before, str(table), pending)


def check_same_files(
    spark: SparkSession, folder: str, before: Mapping[str, int], table: str, pending: Sequence[Entry] = ()
) -> None:
    """Find out whether somebody else added or removed files since the listing ``before``, or is about to.

    Args:
        spark: the session.
        folder: of the version.
        before: the listing.
        table: for messages.
        pending: entries that were ready then, as a run that died has left them.

    Raises:
        BuildError: they did, or their batch is ready in the journal, and so belongs to the table.
    """
    if any(entry not in pending for entry in ready_entries(spark, folder)):
        msg = (
            f"Another run has a batch for {table} in its journal that is ready to be moved in; this one is abandoned "
            "and changed nothing. Run it again: that completes the batch first."
        )
        raise BuildError(msg)
    now = list_data(spark, folder)
    if now != before:
        added, removed = len(now.keys() - before.keys()), len(before.keys() - now.keys())
        msg = (
            f"Another run added {added} and removed {removed} files of {table} while this one was at work; this one "
            "is abandoned and changed nothing. Run it again."
        )
        raise BuildError(msg)
