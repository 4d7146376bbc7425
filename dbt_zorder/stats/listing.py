"""The data files of a folder, as Spark lists them, and how they agree with the stats that are kept of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.sql import glob_escape


def listed_files(spark: SparkSession, location: str) -> DataFrame:
    """Return ``file_path`` and ``file_size`` of every data file below a folder, without opening one.

    The paths are spelled as in the stats. Spark takes files of no bytes for absent, and so does this.
    """
    # without recursion by name, a partition column called "path" would be in the way
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(glob_escape(location))
    return files.select(
        f.col("_metadata.file_path").alias("file_path"), f.col("_metadata.file_size").alias("file_size")
    )


def local_file(name: str) -> str | None:
    """Return the path on this machine of a file that ``listed_files`` names; None if it lies elsewhere."""
    place = urlsplit(name)
    return unquote(place.path) if place.scheme == "file" and not place.netloc else None


def lost_files(spark: SparkSession, location: str, files: Mapping[str, int]) -> list[str]:
    """Return which of some files are not there, or not in the size that they had.

    Spark lists them only where this process does not see all of them itself.

    Args:
        spark: the session.
        location: the folder that they lie in.
        files: their sizes, by the names that ``listed_files`` gives.
    """
    lost = [name for name, size in files.items() if _size(name) != size]
    if lost:
        there = {row[0]: row[1] for row in listed_files(spark, location).collect()}
        lost = [name for name in lost if there.get(name) != files[name]]
    return lost


def _size(name: str) -> int | None:
    file = local_file(name)
    try:
        return None if file is None else os.stat(file).st_size
    except OSError:
        return None
