"""Check rows, files, the table's base and the new version around the swap."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.engine.keep_result import Staged
from dbt_zorder.errors import BuildError
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.catalog import TableInfo, TableName, describe, location_of
from dbt_zorder.spark.files import has_client, list_files
from dbt_zorder.stats.listing import lost_files
from dbt_zorder.stats.store import read_stats, stats_path
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.tombstone import is_dying
from dbt_zorder.tables.parquet.swap import definition_of, publish
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import MARKER_DIRECTORY, is_gone, read_marker, version_of


def verify(query: Staged | None, counted: int, summary: Summary) -> None:
    """Compare the number of rows counted before the write with the number in the files' stats.

    A source that grows during the read gives a number in between. The query is therefore counted once more before a
    difference counts as a loss.

    Args:
        query: query whose rows were counted; None if the counted rows were the written ones.
        counted: number of rows before the write.
        summary: figures of the files.

    Raises:
        BuildError: the numbers do not agree.
    """
    if summary.rows == counted:
        return
    again = counted if query is None else query.rows.count()
    if not min(counted, again) <= summary.rows <= max(counted, again):
        msg = (
            f"The query has {again:,} rows ({counted:,} before the write), and the files hold {summary.rows:,}: "
            "the build is abandoned and the table is as it was. A query that gives another number of rows each time "
            "it runs, such as a sample without a seed, cannot be verified; make it deterministic."
        )
        raise BuildError(msg)


@contextlib.contextmanager
def beside_vacuum(spark: SparkSession, table: TableName, path: str) -> Iterator[None]:
    """Replace an error in the block by a clear one if a vacuum has begun to delete the version at ``path``.

    Raises:
        BuildError: a vacuum deletes the version.
    """
    try:
        yield
    except Exception as exc:
        gone = False
        with contextlib.suppress(Exception):  # if this check fails too, the original error is raised
            gone = is_gone(spark, path) or is_dying(spark, path)
        if not gone:
            raise
        msg = (
            f"A vacuum that ran beside this build deleted what it had written for {table}; the table is as it was. "
            "Run the model again, and do not vacuum with grace_hours: 0 beside it."
        )
        raise BuildError(msg) from exc


def check_version(spark: SparkSession, path: str, stats: pa.Table | None = None) -> None:
    """Check a version once more before it is served: its marker, its stats, and the size of each file.

    Args:
        spark: the session.
        path: folder of the version.
        stats: stats of the version with at least path and size of each file; read from the folder if None.

    Raises:
        BuildError: something is missing, because another process deletes files there.
    """
    if is_dying(spark, path):
        msg = (
            f"The version at {path} is being deleted, or a run that began to delete it has ended, so it is not served; "
            "the table is as it was."
        )
        raise BuildError(msg)
    try:
        if stats is None or not has_client(spark):
            stats = collect_arrow(read_stats(spark, path).select("file_path", "file_size"))
        elif not list_files(spark, stats_path(path)):
            msg = "there are no stats"
            raise FileNotFoundError(msg)
        files = dict(zip(stats["file_path"].to_pylist(), stats["file_size"].to_pylist(), strict=True))
        lost = lost_files(spark, path, files)
        if read_marker(spark, path) is None:
            lost = [f"{path}/{MARKER_DIRECTORY}"]
    except Exception as exc:
        msg = (
            f"The version at {path} is gone, or its stats cannot be read, so it is not served; the table is as it was."
        )
        raise BuildError(msg) from exc
    if lost:
        msg = (
            f"{len(lost)} files of the version went missing before it was served, {lost[0]} first; the table is as "
            "it was."
        )
        raise BuildError(msg)


def check_served(spark: SparkSession, table: TableName, base: TableInfo | None, path: str) -> None:
    """Check whether a version was deleted while it was swapped in, and restore the base if it was.

    Raises:
        BuildError: it was deleted.
    """
    # in this order, because a deletion writes the tombstone first and removes it last
    is_whole = not is_dying(spark, path) and not is_gone(spark, path)
    if is_whole or version_of(location_of(spark, table)) != version_of(path):
        return  # another run has replaced the version and checks its own
    before = read_marker(spark, base.location) if base is not None and version_of(base.location) else None
    if base is not None and before is not None:
        publish(spark, table, definition_of(before, base.comment, own_properties(spark, table)), base.location)
    state = "the version before is served again" if before else "run the model again"
    msg = f"A vacuum that ran beside this build deleted the new version of {table} as it was swapped in; {state}."
    raise BuildError(msg)


def check_base(spark: SparkSession, table: TableName, base: TableInfo | None) -> TableInfo | None:
    """Check that no other run has changed the table since the build began; return its current description.

    Raises:
        BuildError: the table is at another location.
    """
    now = describe(spark, table)
    if (now.location if now else "") != (base.location if base else ""):
        msg = (
            f"Another run changed {table} while this one was building it; this build is abandoned, that one is kept. "
            "Run the model again if its query has newer rows."
        )
        raise BuildError(msg)
    return now


def check_absent(spark: SparkSession, table: TableName) -> None:
    """Check that the table of a first run, whose rows may be only a part, does not exist.

    dbt decides by its list of the schema, taken when the run began, that a run is a first one.

    Raises:
        BuildError: the table exists; a view is allowed and is replaced.
    """
    restore_if_interrupted(spark, table)
    info = describe(spark, table)
    if info is not None and not info.is_view:
        msg = (
            f"{table} exists, though dbt's list of the schema lacks it, so that this run would have begun it anew: "
            "another run made it meanwhile, or the list was taken just as another run put it in place. Nothing was "
            "changed; run again. To replace it on purpose, use --full-refresh, or drop it if it is a snapshot."
        )
        raise BuildError(msg)
