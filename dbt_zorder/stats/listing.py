"""The data files of a folder, as Spark lists them, and how they agree with the stats that are kept of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.spark.local_disk import LocalPath, on_disk
from dbt_zorder.spark.sql import glob_escape

_PLAIN = "/;:@&=+$,!*'()"
"""What ``java.net.URI`` leaves as it is in a path, besides what no encoding changes."""

_HIDDEN, _USUAL = "spark.sql.files.ignoredPathSegmentRegex", "^[._]"
"""Since Spark 4.3: which names are passed over."""

_FILTER = "mapreduce.input.pathFilter.class"

_METADATA = ("_metadata", "_common_metadata")
"""Spark lists folders that begin so, though not files."""


def listed_files(spark: SparkSession, location: str) -> DataFrame:
    """Return ``file_path`` and ``file_size`` of every data file below a folder, without opening one.

    The paths are spelled as in the stats. Spark takes files of no bytes for absent, and so does this.
    """
    # without recursion by name, a partition column called "path" would be in the way
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(glob_escape(location))
    return files.select(
        f.col("_metadata.file_path").alias("file_path"), f.col("_metadata.file_size").alias("file_size")
    )


def data_files(spark: SparkSession, location: str) -> dict[str, int]:
    """Return the same as bytes by path; of a folder on this machine's own disk without a job of Spark's.

    Raises:
        AnalysisException: there is no such folder.
    """
    place = on_disk(spark, location)
    found = _walked(place) if place is not None and _hides_as_usual(spark) else None
    return found if found is not None else {row[0]: row[1] for row in listed_files(spark, location).collect()}


def _walked(place: LocalPath) -> dict[str, int] | None:
    """Return what Spark would list; None where it is to be asked, because it may spell a name otherwise, or fail."""
    found = {}
    try:
        for folder, folders, files in os.walk(place.path, onerror=_raise, followlinks=True):
            folders[:] = [name for name in folders if not _is_hidden(name) or name.startswith(_METADATA)]
            for file in (f"{folder}/{name}" for name in files if not _is_hidden(name)):
                size = os.stat(file).st_size
                if not size:
                    continue
                path = file[len(place.path) :]
                if not path.isascii():
                    return None
                found[place.uri + quote(path, safe=_PLAIN)] = size
    except OSError:
        return None
    return found


def _hides_as_usual(spark: SparkSession) -> bool:
    """Tell whether Spark, which runs in this process, has been told nothing of which names it is to pass over."""
    filters = (spark.conf.get(_FILTER, None), spark._jsc.hadoopConfiguration().get(_FILTER))
    return filters == (None, None) and spark.conf.get(_HIDDEN, _USUAL) == _USUAL


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _raise(error: OSError) -> None:
    raise error


def local_file(name: str) -> str | None:
    """Return the path on this machine of a file that ``listed_files`` names; None if it lies elsewhere."""
    place = urlsplit(name)
    return unquote(place.path) if place.scheme == "file" and not place.netloc else None


def list_data(spark: SparkSession, folder: str) -> Mapping[str, int]:
    """Return the bytes of every data file below ``folder``, by its path from there.

    Args:
        folder: one whose own name occurs nowhere else, as those of versions and journal entries; of another, a path
            is told in whole where it does not show the name.
    """
    return {below_uri(folder, name) or name: size for name, size in data_files(spark, folder).items()}


def below(folder: str, path: str) -> str:
    """Return what follows the folder of that name in a path: what stands before it is written in many ways."""
    return path.partition(f"/{folder.rstrip('/').rsplit('/', 1)[-1]}/")[2]


def below_uri(folder: str, uri: str) -> str:
    """Return the same of a ``_metadata.file_path``, in which special characters are encoded."""
    return unquote(below(folder, uri))


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
