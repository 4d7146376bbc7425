"""Detect changes to the data files of a version, as Spark lists them without hidden files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.listing import list_data
from dbt_zorder.tables.parquet.journal import JournalEntry, ready_entries
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")


def check_unchanged(spark: SparkSession, table: TableName, before: Mapping[str, int] | None) -> None:
    """Call ``check_same_files`` for the table's current location; do nothing without an earlier listing.

    Raises:
        BuildError: ``check_same_files`` raised it.
    """
    info = describe(spark, table)
    if before is not None and info is not None:
        check_same_files(spark, info.location, before, str(table))


def watch(spark: SparkSession, table: TableName, base: TableInfo | None) -> Callable[[], None]:
    """Return a function that checks, before a version is replaced, whether another run has added to it since.

    The function does nothing for a table of another kind, or over Spark Connect, where each batch is a new version.
    """
    if base is None or not version_of(base.location) or not has_client(spark):
        return lambda: None
    location = base.location
    try:
        before = list_data(spark, location)
    except Exception as exc:  # its folder is gone, so any new version is an improvement
        _LOG.debug("the files of %s before this build could not be listed: %s", table, exc)
        return lambda: None
    pending = ready_entries(spark, location)
    return lambda: check_same_files(spark, location, before, str(table), pending)


def check_same_files(
    spark: SparkSession, folder: str, before: Mapping[str, int], table: str, pending: Sequence[JournalEntry] = ()
) -> None:
    """Check that no other run has changed a version's files since a listing, or is about to.

    Args:
        spark: the session.
        folder: folder of the version.
        before: the earlier listing: bytes of each file by path.
        table: name of the table, for messages.
        pending: journal entries that were ready then, left by a dead run.

    Raises:
        BuildError: files differ, or another batch is ready in the journal and therefore belongs to the table.
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
