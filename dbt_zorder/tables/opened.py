"""Check that a table opens after its entry was changed: a catalog may accept a location that leads nowhere."""

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
    """Open a table by its name, and check that it lists the files of ``location``.

    If another run has meanwhile given the table another version, that run checks it.

    Args:
        spark: the session, without cached metadata of the table.
        table: table whose entry was changed.
        location: its new location: a version's folder, or the stats folder of one.
        former: its previous location.

    Raises:
        BuildError: the catalog has another location, or the table cannot be read from its location.
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
        # a partitioned table without rows has no files
        lost = not number and bool(list_data(spark, location))
    except Exception as exc:
        msg = f"Spark cannot open it at {found}: {message_of(exc)}"
        raise BuildError(msg) from exc
    if lost or (number and not is_within(first, location)):
        msg = f"Spark finds {first or 'no file'} in it, in place of the files at {location}"
        raise BuildError(msg)


def check_readable(spark: SparkSession, table: TableName, doing: str) -> None:
    """Open a table by its new name, after its entry was renamed.

    Args:
        spark: the session.
        table: the table's new name.
        doing: what was done to the table, for the message.

    Raises:
        BuildError: it cannot be opened.
    """
    try:
        _ = spark.table(table.sql).schema
    except Exception as exc:
        msg = f"{table} {doing}, but cannot be opened under that name: {message_of(exc)}"
        raise BuildError(msg) from exc


def _version_in(location: str) -> str:
    """Return the version at a location, or the version that contains the location, as with stats."""
    return version_of(location) or version_of(location.rstrip("/").rpartition("/")[0])


def _files_of(df: DataFrame) -> tuple[int, str]:
    """Return the number of a table's files and the first path; Spark lists the files when it opens the table."""
    files: Any
    try:
        # read the relation itself, even if its rows are cached, and avoid converting each of many paths
        files = df._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation().inputFiles()
    except Exception:  # over Spark Connect, or another kind of source
        files = df.inputFiles()
    return len(files), str(files[0]) if len(files) else ""
