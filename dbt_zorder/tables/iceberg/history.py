"""Find the last whole layout among the snapshots of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import functions as f

from dbt_zorder.stats.iceberg.manifests import IcebergState
from dbt_zorder.tables.lakehouse.format import NOTE, WHOLE

LAST_NATIVE = "dbt_zorder.last-native-layout"
"""Names the table property with the snapshot of the last native layout, to which we cannot attach a note."""


_MOST_COMMITS = 20
"""The most snapshots read one by one from Iceberg's library; one job reads all older ones."""


def last_layout(state: IcebergState) -> tuple[int, int, int] | None:
    """Return files, rows and bytes of the last whole layout; None where no snapshot notes one."""
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
    """Yield the ancestor snapshots of a table and their summaries, newest first.

    After 20, or after an expired one, yield all retained older snapshots of any branch.
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
