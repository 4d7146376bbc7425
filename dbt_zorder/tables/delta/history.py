"""Read the commits of a Delta table's log: the last whole layout, and concurrent commits."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.delta.log import DeltaState
from dbt_zorder.tables.lakehouse.format import NOTE, WHOLE

_LOG = logging.getLogger("dbt_zorder")


def commit_of(spark: SparkSession, table: TableName, token: str) -> tuple[int, int, int]:
    """Return the version of the Delta commit with a token, its base version, and the latest version.

    Raises:
        LookupError: the log does not contain the token.
    """
    rows = spark.sql(f"DESCRIBE HISTORY {table.sql}").select("version", "readVersion", "userMetadata").collect()
    for version, base, note in rows:
        if token in (note or ""):
            return int(version), int(base), int(rows[0][0])
    msg = f"The log of {table} has no commit {token}."
    raise LookupError(msg)


def lost_commits(spark: SparkSession, table: TableName, before: str, token: str) -> str:
    """Return the version with the rows that a replacement left out; an empty string if there is none."""
    ours, base, _ = commit_of(spark, table, token)
    return "" if base == int(before) else f"VERSION AS OF {ours - 1}"


def last_layout(state: DeltaState) -> tuple[int, int, int] | None:
    """Return files, rows and bytes of the last whole layout; None where the log has none."""
    for commit in _delta_commits(state):
        metrics = commit.get("operationMetrics")
        # OPTIMIZE ZORDER BY rewrites every file
        if metrics and (commit.get("operationParameters") or {}).get("zOrderBy", "[]") != "[]":
            return int(metrics["numAddedFiles"]), 0, int(metrics["numAddedBytes"])
        if metrics and _is_whole(commit.get("userMetadata")):
            return int(metrics["numFiles"]), int(metrics["numOutputRows"]), int(metrics["numOutputBytes"])
    return None


def _is_whole(note: str | None) -> bool:
    """Return whether a commit's note marks a whole layout."""
    return note is not None and f'"{NOTE}": "{WHOLE}"' in note


def _delta_commits(state: DeltaState) -> Iterator[Mapping[str, Any]]:
    """Yield the commits of a table, newest first: from their files, or from its history if there are many."""
    try:
        yield from state.last_commits()
        return
    except (LookupError, ValueError) as exc:
        _LOG.debug("the history of %s is asked by a job: %s", state.table, exc)
    log = state.spark.sql(f"DESCRIBE HISTORY {state.table.sql}").select(
        "operationParameters", "userMetadata", "operationMetrics"
    )
    yield from (row.asDict() for row in log.collect())
