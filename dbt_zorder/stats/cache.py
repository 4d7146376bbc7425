"""Cache small stats in the session's memory, so that a pruned read needs no Spark job for them.

Cached rows are a local relation: Spark's optimizer itself evaluates a query on one. A cache entry is valid for exactly
the files in the stats folder, which every call lists: a file name contains a UUID and is never reused.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.arrow import collect_arrow, frame_of
from dbt_zorder.spark.files import list_versions
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.store import load_stats, stats_path

FILE_BYTES = 1 << 20
"""The most bytes of stats on disk that are cached; larger stats justify a Spark job."""

TABLE_BYTES = 8 << 20
"""The most bytes of one table's stats in memory."""

ALL_BYTES = 64 << 20
"""The most bytes of all stats in memory; the least recently used are evicted first."""

_Entry = tuple[frozenset[tuple[str, int, int]], DataFrame | None, int]
"""The files that the rows were read from; the rows, None if they cannot be cached; their bytes."""

_LOCK = threading.Lock()
_cache: OrderedDict[tuple[SparkSession, str], _Entry] = OrderedDict()


def cached_stats(spark: SparkSession, location: str) -> DataFrame | None:
    """Return the stats of the version at ``location`` as a local relation; None if they must be read from disk.

    Return None for large stats, and for a session without file system access or local relations. Also return None for a
    type that does not survive the conversion.

    Raises:
        LookupError: there are no stats.
    """
    files = list_versions(spark, stats_path(location))
    if not files or sum(size for _, size, _ in files) > FILE_BYTES:
        return None
    key = (spark, location)
    with _LOCK:
        entry = _cache.get(key)
        if entry is not None and entry[0] == files:
            _cache.move_to_end(key)
            return entry[1]
    frame, size = _local(spark, load_stats(spark, location))
    with _LOCK:
        _cache[key] = (files, frame, size)
        _evict(spark)
    return frame


def _local(spark: SparkSession, stats: DataFrame | LocalStats) -> tuple[DataFrame | None, int]:
    try:
        table = stats.rows if isinstance(stats, LocalStats) else collect_arrow(stats)
        if table.nbytes > TABLE_BYTES:
            return None, 0
        frame = frame_of(spark, table, stats.schema)
        # select("*") makes Spark analyse the types: the frame only repeats the given schema
        return (frame, table.nbytes) if frame.select("*").schema == stats.schema else (None, 0)
    except Exception:  # Arrow does not support a type
        return None, 0


def _evict(spark: SparkSession) -> None:
    """Evict the stats of stopped sessions, and the least recently used beyond the limit."""
    for session, location in list(_cache):
        if session is not spark and session.sparkContext._jsc is None:
            del _cache[session, location]
    while len(_cache) > 1 and sum(size for _, _, size in _cache.values()) > ALL_BYTES:
        _cache.popitem(last=False)
