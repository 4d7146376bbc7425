"""The stats of a version, kept in a folder of the version's own: one pointer commits data and stats."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.sql import glob_escape
from dbt_zorder.stats.schema import STATS_DIRECTORY


def stats_path(location: str) -> str:
    """Return the folder of the stats that belong to the data at ``location``."""
    return f"{location.rstrip('/')}/{STATS_DIRECTORY}"


def write_stats(stats: DataFrame, location: str) -> DataFrame:
    """Write the stats of the version at ``location``, as one file in order of path; return them as they lie there."""
    stats.coalesce(1).sortWithinPartitions("file_path").write.mode("overwrite").parquet(stats_path(location))
    # a schema that is known need not be looked for, which would be a job of Spark's
    return stats.sparkSession.read.schema(stats.schema).parquet(glob_escape(stats_path(location)))


def read_stats(spark: SparkSession, location: str) -> DataFrame:
    """Return the stats of the version at ``location``.

    Raises:
        AnalysisException: there are none.
    """
    return spark.read.parquet(glob_escape(stats_path(location)))


def known_stats(spark: SparkSession, location: str) -> DataFrame | None:
    """Return the stats of the version at ``location``, None if there are none that can be read."""
    try:
        return read_stats(spark, location)
    except Exception:
        return None


def total_size(stats: DataFrame | None) -> tuple[int, int]:
    """Return bytes and rows of all files, as some stats tell them; zeros if they do not."""
    try:
        return (0, 0) if stats is None else sum_up(stats)
    except Exception:  # no stats, no help
        return 0, 0


def sum_up(stats: DataFrame) -> tuple[int, int]:
    """Return bytes and rows of all files of some stats."""
    size, rows = stats.selectExpr("sum(file_size)", "sum(row_count)").collect()[0]
    return size or 0, rows or 0
