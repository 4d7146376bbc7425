"""Small stats held in the session's memory, so that a pruned read asks them without a Spark job.

Held rows are a local relation: Spark's optimizer itself works out what is selected from one. They are those of exactly
the files that lie in the stats' folder, which every call lists: a name that Spark makes up is never used twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.stats.store import read_stats, stats_path

BYTES_AT_MOST = 1 << 20
"""Of stats on disk: some thousands of files with a few columns. Larger ones are worth the start of a job."""

TABLES_AT_MOST = 64

_Files = frozenset[tuple[str, int, int]]

_LOCK = threading.Lock()
_held: OrderedDict[tuple[SparkSession, str], tuple[_Files, DataFrame]] = OrderedDict()


def held_stats(spark: SparkSession, location: str) -> DataFrame | None:
    """Return the stats of the version at ``location`` as a local relation; None if they are to be read as they lie.

    None where they are large, where this session has no client of the file system or cannot make such a relation, and
    where a type does not come back as it was.

    Raises:
        AnalysisException: there are no stats.
    """
    if not hasattr(DataFrame, "toArrow"):  # PySpark 3.5 cannot make a DataFrame of an Arrow table
        return None
    files = _files(spark, stats_path(location))
    if not files or sum(size for _, size, _ in files) > BYTES_AT_MOST:
        return None
    key = (spark, location)
    with _LOCK:
        known = _held.get(key)
        if known is not None and known[0] == files:
            _held.move_to_end(key)
            return known[1]
    frame = _local(spark, read_stats(spark, location))
    if frame is not None:
        with _LOCK:
            _held[key] = (files, frame)
            while len(_held) > TABLES_AT_MOST:
                _held.popitem(last=False)
    return frame


def _files(spark: SparkSession, folder: str) -> _Files:
    """Return name, size and time of every file in a folder; none where this session cannot list it."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return frozenset()
    path = jvm.org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(path):
        return frozenset()
    return frozenset(
        (str(one.getPath().getName()), int(one.getLen()), int(one.getModificationTime()))
        for one in system.listStatus(path)
        if one.isFile()
    )


def _local(spark: SparkSession, stats: DataFrame) -> DataFrame | None:
    try:
        frame = spark.createDataFrame(collect_arrow(stats), schema=stats.schema)
    except Exception:  # a type that Arrow does not carry: it is read as it lies
        return None
    return frame if frame.schema == stats.schema else None
