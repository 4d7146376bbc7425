"""Old versions are collected when they are both beyond the number kept and beyond the grace period."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dbt_zorder.table.files import delete_folder, has_client, list_folders
from dbt_zorder.table.version import Marker, is_version, read_marker

_LOG = logging.getLogger("dbt_zorder")


def collect_old(spark: SparkSession, root: str, current: str, keep: int, grace_hours: float) -> list[str]:
    """Delete old versions of a table and return their names.

    Never deleted is the current version, a folder whose name is not a version's, one without a readable marker, and one
    of another table, which had the current one's name before.
    A reader that began with a version keeps it for the grace period after it was replaced.

    Args:
        root: folder of all versions.
        current: name of the version that is served.
        keep: number of versions besides the current one that stay whatever their age.
        grace_hours: hours that a version stays at least after it was replaced.
    """
    if not has_client(spark):
        return []
    old = [name for name in list_folders(spark, root) if is_version(name) and name != current]
    beyond = sorted(old, reverse=True)[keep:]
    if not beyond:
        return []
    markers = {name: read_marker(spark, f"{root}/{name}") for name in [*old, current]}
    limit = datetime.now(timezone.utc) - timedelta(hours=grace_hours)
    collected = []
    for name in beyond:
        marker = markers[name]
        if marker is None or marker.version != name:
            continue
        served = markers[current]
        if served is not None and served.table.lower() != marker.table.lower():
            continue
        if replaced_at(marker, [m for m in markers.values() if m is not None]) <= limit:
            delete_folder(spark, f"{root}/{name}")
            collected.append(name)
    _LOG.debug("collected %d old versions below %s", len(collected), root)
    return collected


def replaced_at(marker: Marker, others: Sequence[Marker]) -> datetime:
    """Return the latest time at which a version may have been replaced.

    That is when the last build that began on top of it was begun; a version that none was built upon was never served
    (its build failed), or its successors are gone, and its own time counts.
    """
    times = [other.created_at for other in others if other.base == marker.version] or [marker.created_at]
    return max(datetime.fromisoformat(time) for time in times)
