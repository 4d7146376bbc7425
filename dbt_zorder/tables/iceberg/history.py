"""What the snapshots of an Iceberg table say of its commits: which laid it out whole last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import functions as f

from dbt_zorder.stats.iceberg.manifests import IcebergState
from dbt_zorder.tables.lakehouse.format import NOTE, WHOLE

LAST_NATIVE = "dbt_zorder.last-native-layout"
"""Property of a table: the snapshot that its own command last laid out, which takes no note of ours."""


_MOST_COMMITS = 20
"""So many are looked at one by one, as its library holds them; those behind them are asked by one job."""


def last_layout(state: IcebergState) -> tuple[int, int, int] | None:
    """Return files, rows and bytes of the last whole layout, None where no snapshot says so."""
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
