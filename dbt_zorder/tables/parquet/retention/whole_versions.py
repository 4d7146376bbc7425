"""Check whether a table's version is complete, which it may not be after a metastore was restored; advise on repair."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, MissingVersionError
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.listing import list_data, lost_files
from dbt_zorder.stats.store import read_stats
from dbt_zorder.tables.parquet.conflicts import check_version
from dbt_zorder.tables.parquet.retention.ownership import claimed_versions
from dbt_zorder.tables.parquet.retention.tombstone import is_dying
from dbt_zorder.tables.version import Marker, read_marker, version_of


def why_gone(spark: SparkSession, path: str) -> str:
    """Return why the version at ``path`` is not complete, as a clause; empty if nothing indicates that.

    A version with unreadable stats may be complete: its files cannot be counted then.
    """
    if read_marker(spark, path) is None:
        return "which is gone"
    if is_dying(spark, path):
        return "whose deletion has begun"
    with contextlib.suppress(Exception):
        stats = collect_arrow(read_stats(spark, path).select("file_path", "file_size"))
        files = dict(zip(stats["file_path"].to_pylist(), stats["file_size"].to_pylist(), strict=True))
        lost = lost_files(spark, path, files)
        if lost:
            return f"which lacks {len(lost)} of its {len(files)} files"
    return ""


def whole_versions(spark: SparkSession, table: TableName, location: str) -> dict[str, tuple[str, Marker]]:
    """Return path and marker, by name, of a table's remaining complete versions, without the one it leads to."""
    found = {}
    for path, marker in claimed_versions(spark, table, location).items():
        with contextlib.suppress(BuildError):
            check_version(spark, path)
            found[version_of(path)] = (path, marker)
    found.pop(version_of(location), None)
    return found


def list_whole(spark: SparkSession, table: TableName, location: str) -> Mapping[str, int]:
    """Return what ``list_data`` does for the folder that a table is served from.

    Raises:
        MissingVersionError: that is a version which is gone or half deleted; the message says what repairs the table.
        Exception: as Spark does where a folder that is no version cannot be listed.
    """
    try:
        found = list_data(spark, location)
    except Exception as exc:
        check_there(spark, table, location, exc)
        raise
    if not found:
        check_there(spark, table, location)
    return found


def check_there(spark: SparkSession, table: TableName, location: str, cause: Exception | None = None) -> None:
    """Find out whether the version that a table is served from is gone, once something has failed there.

    Raises:
        MissingVersionError: it is, or its deletion has begun.
    """
    if version_of(location) and (read_marker(spark, location) is None or is_dying(spark, location)):
        msg = missing_version_message(spark, table, location, why_gone(spark, location))
        raise MissingVersionError(msg) from cause


def missing_version_message(spark: SparkSession, table: TableName, location: str, why: str) -> str:
    """Return a message that names the missing version, the remaining complete ones, and the repair."""
    names = sorted(whole_versions(spark, table, location), reverse=True) if has_client(spark) else []
    left = "No whole version is left there. " if has_client(spark) else ""
    left = f"Whole versions there: {', '.join(names)}. " if names else left
    args = f"{{model: {table}, version: {names[0] if names else ''}}}"
    serve = f"Serve one of them by dbt run-operation zorder_rollback --args '{args}', or " if names else ""
    run = "run the model with --full-refresh."
    return f"{table} leads to {location}, {why}. {left}{serve}{run if serve else run.capitalize()}"
