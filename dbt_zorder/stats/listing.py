"""List the data files of a folder as Spark does, and compare them with their stats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.spark.local_disk import LocalPath, on_disk
from dbt_zorder.spark.sql import glob_escape

_PLAIN = "/;:@&=+$,!*'()"
"""Characters that ``java.net.URI`` leaves unencoded in a path, besides letters and digits."""

_HIDDEN, _USUAL = "spark.sql.files.ignoredPathSegmentRegex", "^[._]"
"""The setting for ignored names, new in Spark 4.3, and its default."""

_FILTER = "mapreduce.input.pathFilter.class"

_METADATA = ("_metadata", "_common_metadata")
"""Prefixes of folders that Spark lists, although it ignores files with these prefixes."""


def listed_files(spark: SparkSession, location: str) -> DataFrame:
    """Return ``file_path`` and ``file_size`` of every data file below a folder, without opening one.

    Paths are spelled as in the stats. Like Spark, ignore files of zero bytes.
    """
    # without recursive lookup, a partition column called "path" would clash
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(glob_escape(location))
    return files.select(
        f.col("_metadata.file_path").alias("file_path"), f.col("_metadata.file_size").alias("file_size")
    )


def data_files(spark: SparkSession, location: str) -> dict[str, int]:
    """Return the same as bytes by path; list a folder on this machine's disk without a Spark job.

    Raises:
        AnalysisException: there is no such folder.
    """
    place = on_disk(spark, location)
    found = _walked(place) if place is not None and _hides_as_usual(spark) else None
    return found if found is not None else {row[0]: row[1] for row in listed_files(spark, location).collect()}


def _walked(place: LocalPath) -> dict[str, int] | None:
    """Return the files that Spark would list.

    Return None where Spark must list them, because it may spell a name otherwise or fail.
    """
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
    """Return whether Spark, which runs in this process, ignores names by its default rule."""
    filters = (spark.conf.get(_FILTER, None), spark._jsc.hadoopConfiguration().get(_FILTER))
    return filters == (None, None) and spark.conf.get(_HIDDEN, _USUAL) == _USUAL


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _raise(error: OSError) -> None:
    raise error


def local_file(name: str) -> str | None:
    """Return the path on this machine of a file from ``listed_files``; None if it is not local."""
    place = urlsplit(name)
    return unquote(place.path) if place.scheme == "file" and not place.netloc else None


def list_data(spark: SparkSession, folder: str) -> Mapping[str, int]:
    """Return the bytes of every data file below ``folder``, by relative path.

    Args:
        folder: a folder with a unique name, such as that of a version or a journal entry. With any other folder, a
            path that lacks its name is returned in full.
    """
    return {below_uri(folder, name) or name: size for name, size in data_files(spark, folder).items()}


def below(folder: str, path: str) -> str:
    """Return the part of a path after the folder's name; the part before it has several spellings."""
    return path.partition(f"/{folder.rstrip('/').rsplit('/', 1)[-1]}/")[2]


def below_uri(folder: str, uri: str) -> str:
    """Return the same of a ``_metadata.file_path``, in which special characters are encoded."""
    return unquote(below(folder, uri))


def lost_files(spark: SparkSession, location: str, files: Mapping[str, int]) -> list[str]:
    """Return the files that are missing or have changed in size.

    Spark lists them only where this process cannot find all of them itself.

    Args:
        spark: the session.
        location: the folder of the files.
        files: their sizes, by name as in ``listed_files``.
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
