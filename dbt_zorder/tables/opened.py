"""A table opened as any reader opens it, after its entry was changed: what a catalog accepts may lead nowhere."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName, location_of
from dbt_zorder.spark.location import is_within
from dbt_zorder.spark.messages import message_of
from dbt_zorder.stats.listing import list_data
from dbt_zorder.tables.version import version_of


def check_opens(spark: SparkSession, table: TableName, location: str, former: str = "") -> None:
    """Open a table by its name, and see that it lists the files of ``location``.

    Where another run has given the table another version meanwhile, that is for that run to look at.

    Args:
        spark: the session, which has forgotten what it had read of the table.
        table: whose entry was changed.
        location: that it was given: a version of ours, or the stats of one.
        former: the location before.

    Raises:
        BuildError: the catalog has another location, or the one that it has cannot be read by.
    """
    found = location_of(spark, table)
    wanted, served = _version_in(location), _version_in(found)
    if served != wanted and served and served != _version_in(former):
        return
    if served != wanted:
        msg = f"the catalog has {found or 'no location'} of it, though it was given {location}"
        raise BuildError(msg)
    try:
        number, first = _files_of(spark.table(table.sql))
        # a partitioned table without rows has no file
        lost = not number and bool(list_data(spark, location))
    except Exception as exc:
        msg = f"Spark cannot open it at {found}: {message_of(exc)}"
        raise BuildError(msg) from exc
    if lost or (number and not is_within(first, location)):
        msg = f"Spark finds {first or 'no file'} in it, in place of the files at {location}"
        raise BuildError(msg)


def check_readable(spark: SparkSession, table: TableName, doing: str) -> None:
    """Open a table by its name, after its entry was renamed.

    Args:
        spark: the session.
        table: by its new name.
        doing: what was done to it, for the message.

    Raises:
        BuildError: it cannot be opened.
    """
    try:
        _ = spark.table(table.sql).schema
    except Exception as exc:
        msg = f"{table} {doing}, but cannot be opened under that name: {message_of(exc)}"
        raise BuildError(msg) from exc


def _version_in(location: str) -> str:
    """Return the version that a location is, or that it lies in as stats do."""
    return version_of(location) or version_of(location.rstrip("/").rpartition("/")[0])


def _files_of(df: DataFrame) -> tuple[int, str]:
    """Return the number of a table's files, and the first of them by name; Spark lists them as it opens the table."""
    files: Any
    try:
        # the relation itself, whether or not Spark has its rows in a cache; and not each path of many
        files = df._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation().inputFiles()
    except Exception:  # over Spark Connect, or of a source of another kind
        files = df.inputFiles()
    return len(files), str(files[0]) if len(files) else ""
