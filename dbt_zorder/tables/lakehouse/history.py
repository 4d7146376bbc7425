"""What the log of a format says of a table: its version now, and what it was when it was last laid out whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.delta.log import DeltaState
from dbt_zorder.stats.iceberg.manifests import IcebergState
from dbt_zorder.stats.summary import Summary
from dbt_zorder.stats.table_state import FormatState, state_of
from dbt_zorder.tables.lakehouse.spark_writer import LAST_NATIVE, NOTE, WHOLE, is_whole

_LOG = logging.getLogger("dbt_zorder")

_MOST_COMMITS = 20
"""Of Iceberg so many are looked at one by one, as its library holds them; those behind them are asked by one job."""


def version_of(spark: SparkSession, provider: str, table: TableName) -> str:
    """Return the version number of a Delta table, or the snapshot id of an Iceberg table."""
    return state_of(spark, provider, table).version


def last_whole(state: FormatState) -> Summary:
    """Return files, rows and bytes of a table after its last whole layout; zeros where its log does not tell."""
    found = None
    if isinstance(state, DeltaState):
        found = _last_delta(state)
    elif isinstance(state, IcebergState):
        found = _last_iceberg(state)
    return Summary(*found, {}) if found else Summary(0, 0, 0, {})


def commit_of(spark: SparkSession, table: TableName, token: str) -> tuple[int, int, int]:
    """Return of the Delta commit with a token its version, the version that it was based on, and the latest version.

    Raises:
        LookupError: the log does not have it.
    """
    rows = spark.sql(f"DESCRIBE HISTORY {table.sql}").select("version", "readVersion", "userMetadata").collect()
    for version, base, note in rows:
        if token in (note or ""):
            return int(version), int(base), int(rows[0][0])
    msg = f"The log of {table} has no commit {token}."
    raise LookupError(msg)


def _last_delta(state: DeltaState) -> tuple[int, int, int] | None:
    for commit in _delta_commits(state):
        metrics = commit.get("operationMetrics")
        # OPTIMIZE ZORDER BY writes every file anew
        if metrics and (commit.get("operationParameters") or {}).get("zOrderBy", "[]") != "[]":
            return int(metrics["numAddedFiles"]), 0, int(metrics["numAddedBytes"])
        if metrics and is_whole(commit.get("userMetadata")):
            return int(metrics["numFiles"]), int(metrics["numOutputRows"]), int(metrics["numOutputBytes"])
    return None


def _delta_commits(state: DeltaState) -> Iterator[Mapping[str, Any]]:
    """Return the commits of a table from the last one back: by their files, and by its history where they are many."""
    try:
        yield from state.last_commits()
        return
    except (LookupError, ValueError) as exc:
        _LOG.debug("the history of %s is asked by a job: %s", state.table, exc)
    log = state.spark.sql(f"DESCRIBE HISTORY {state.table.sql}").select(
        "operationParameters", "userMetadata", "operationMetrics"
    )
    yield from (row.asDict() for row in log.collect())


def _last_iceberg(state: IcebergState) -> tuple[int, int, int] | None:
    native = state.kept.properties().get(LAST_NATIVE)
    for snapshot, summary in _iceberg_commits(state):
        if str(snapshot) == native or summary.get(NOTE) == WHOLE:
            return (
                int(summary["total-data-files"]),
                int(summary["total-records"]),
                int(summary["total-files-size"]),
            )
    return None


def _iceberg_commits(state: IcebergState) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Return the snapshots that a table came from and their summaries, from the last one back.

    Behind some, and where one of them has expired, these are all that are kept, on whatever branch.
    """
    snapshot, oldest = state.snapshot, None
    if snapshot is None:
        return
    for _ in range(_MOST_COMMITS):
        yield snapshot.snapshotId(), snapshot.summary()
        oldest, before = snapshot.timestampMillis(), snapshot.parentId()
        if before is None:
            return
        snapshot = state.kept.snapshot(before)
        if snapshot is None:
            break
    older = state.spark.table(f"{state.table.sql}.snapshots")
    if oldest is not None:
        older = older.where(f.col("committed_at") < f.timestamp_millis(f.lit(oldest)))
    yield from map(tuple, older.orderBy(f.desc("committed_at")).select("snapshot_id", "summary").collect())
