"""Split the files of a version, so that the next one has 2, 4, 8 or more times the buckets.

The bucket of a row in the next version is its bucket in this one, or that plus a multiple of this one's number. So each
file is cut by the hash of its rows, without a shuffle and without a sort. The parts keep the order of the rows, and lie
in the box of the file.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.hash_index import BUCKET
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.partitions import partition_hash
from dbt_zorder.layout.split_trees import split_trees
from dbt_zorder.spark.conf import IGNORED_FILES, OPEN_FILES, sibling_session
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.summary import Summary

_ANY_SIZE = str(1 << 44)
"""16 TB: no file is that large, and the sum of many is still a number that Spark can add."""

_FILE_BY_FILE = {
    "spark.sql.files.maxPartitionBytes": _ANY_SIZE,
    "spark.sql.files.openCostInBytes": _ANY_SIZE,
    "spark.sql.files.maxPartitionNum": str((1 << 31) - 1),
    "spark.sql.sources.bucketing.enabled": "false",
    **dict.fromkeys(IGNORED_FILES, "false"),
}
"""Settings under which each task of a scan reads one file from its first row to its last."""


def session_for_split(spark: SparkSession, times: int) -> SparkSession | None:
    """Return a session that reads and writes file by file, and keeps the order of rows; None if there can be none.

    It is another one, because these settings would slow down what other threads do in ``spark`` meanwhile.

    Args:
        spark: the session.
        times: number of parts of a bucket, which a task writes side by side: else Spark would sort by them first.
    """
    return sibling_session(spark, {**_FILE_BY_FILE, OPEN_FILES: str(times)})


def split_layout(rows: DataFrame, layout: Layout, now: int, buckets: int) -> Layout:
    """Return the layout of a version's rows after the split: each part of a bucket has the tree of that bucket.

    Args:
        rows: rows of the version, with their new bucket.
        layout: saved layout of the version.
        now: number of buckets of the version.
        buckets: new number, a multiple of ``now``.
    """
    others = [name for name in layout.partition_columns if name != quote_name(BUCKET)]
    parts = rows.sparkSession.range(buckets).selectExpr(f"CAST(id AS INT) AS {BUCKET}")
    if others:
        parts = parts.crossJoin(rows.selectExpr(*others).distinct())
    before = [f"CAST({BUCKET} % {now} AS INT)" if name not in others else name for name in layout.partition_columns]
    hashed = parts.selectExpr(partition_hash(layout.partition_columns), partition_hash(before)).collect()
    return replace(split_trees(layout, dict(hashed)), rows=rows.count())


def split_figures(built: Summary, times: int) -> Summary:
    """Return the figures of a table's last whole build as if its files had been split then."""
    reads = {name: mean * times for name, mean in built.point_query_files.items()}
    return replace(built, files=built.files * times, point_query_files=reads)
