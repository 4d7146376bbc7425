"""Store the stats of a version in the version's own folder, so that one pointer commits data and stats."""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, TimestampType

from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.files import open_path
from dbt_zorder.spark.jvm import class_named, has_jvm
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.stats.arrow_store import ENDING, LocalStats, read_local, write_local
from dbt_zorder.stats.footer_schema import footer_schema
from dbt_zorder.stats.portability import is_legacy, without_old
from dbt_zorder.stats.schema import STATS_DIRECTORY, with_bounds

_LOG = logging.getLogger("dbt_zorder")
_SPARKS = ".parquet"
_REBASE = ("spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite")


def stats_path(location: str) -> str:
    """Return the folder of the stats for the data at ``location``."""
    return f"{location.rstrip('/')}/{STATS_DIRECTORY}"


def write_stats(stats: DataFrame | LocalStats, location: str) -> DataFrame | LocalStats:
    """Write the stats of the version at ``location`` as one file sorted by path, and return the stored rows.

    Existing stats are replaced.
    """
    if isinstance(stats, LocalStats):
        written = write_local(stats, stats_path(location))
        if written is not None:
            return written
        stats = stats.frame()
    stats = _as_writable(stats)
    stats.coalesce(1).sortWithinPartitions("file_path").write.mode("overwrite").parquet(stats_path(location))
    _rename(stats.sparkSession, stats_path(location))
    # an explicit schema saves the Spark job that would infer it
    return stats.sparkSession.read.schema(stats.schema).parquet(glob_escape(stats_path(location)))


def _rename(spark: SparkSession, folder: str) -> None:
    """Rename the files that Spark wrote to the ending of stats files; do nothing over Spark Connect."""
    if not has_jvm(spark):
        return
    try:
        system, path = open_path(spark, folder)
        place = class_named(spark._jvm, "org.apache.hadoop.fs.Path")
        for file in system.listStatus(path):
            name = str(file.getPath().getName())
            if name.endswith(_SPARKS):
                system.rename(file.getPath(), place(path, name.removesuffix(_SPARKS) + ENDING))
    except Exception as exc:  # Spark reads files of any name
        _LOG.debug("the stats in %s keep the names that Spark gave them: %s", folder, in_one_line(exc))


def _as_writable(stats: DataFrame) -> DataFrame:
    """Return stats whose bounds still enclose the values if Spark's settings change values on write.

    ``TIMESTAMP_MILLIS`` truncates microseconds. A calendar of before 1582 (``LEGACY``) lacks ten days and has other
    time zones before 1900. Neither setting can be overridden for a single write.
    """
    spark = stats.sparkSession
    cuts = str(spark.conf.get("spark.sql.parquet.outputTimestampType")).upper() == "TIMESTAMP_MILLIS"
    rebased = is_legacy(spark, _REBASE)

    def written(kind: DataType | None, low: str, high: str) -> tuple[str, str]:
        if cuts and isinstance(kind, TimestampType):
            high = f"try_add({high}, INTERVAL '0.000999' SECOND)"
        return without_old(kind, low) if rebased else low, high

    return with_bounds(stats, written) if cuts or rebased else stats


def read_stats(spark: SparkSession, location: str) -> DataFrame:
    """Return the stats of the version at ``location``, with the schema in their first file.

    Raises:
        LookupError: there are none.
        Exception: ``footer_schema`` cannot read the file.
    """
    folder = stats_path(location)
    return spark.read.schema(footer_schema(spark, folder)).parquet(glob_escape(folder))


def load_stats(spark: SparkSession, location: str) -> DataFrame | LocalStats:
    """Return the same, from memory where this process can read them itself.

    Raises:
        Exception: ``read_stats`` cannot read them.
    """
    return read_local(spark, stats_path(location)) or read_stats(spark, location)


def load_sizes(spark: SparkSession, location: str) -> pa.Table | None:
    """Return bytes and rows of each file of the version at ``location``, None if no stats can be read."""
    try:
        return sizes_of(load_stats(spark, location))
    except Exception:  # the sizes are optional
        return None


def sizes_of(stats: DataFrame | LocalStats) -> pa.Table:
    """Return bytes and rows of each file in stats."""
    names = ["file_size", "row_count"]
    return stats.rows.select(names) if isinstance(stats, LocalStats) else collect_arrow(stats.select(*names))
