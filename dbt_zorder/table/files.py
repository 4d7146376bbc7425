"""Folders on whatever file system the session reaches, through its own Hadoop client.

Over Spark Connect there is no such client in this process: nothing is listed and nothing deleted there.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def has_client(spark: SparkSession) -> bool:
    """Tell whether this session can list and delete folders."""
    return getattr(spark, "_jvm", None) is not None and getattr(spark, "_jsc", None) is not None


def list_folders(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the folders in ``path``; none if it does not exist."""
    system, folder = _open(spark, path)
    if not system.exists(folder):
        return []
    return sorted(status.getPath().getName() for status in system.listStatus(folder) if status.isDirectory())


def delete_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder and all that is in it; none there is fine."""
    system, folder = _open(spark, path)
    system.delete(folder, True)


def is_empty(spark: SparkSession, path: str) -> bool:
    """Tell whether a folder is missing or holds nothing."""
    system, folder = _open(spark, path)
    return not system.exists(folder) or len(system.listStatus(folder)) == 0


def same_place(spark: SparkSession, one: str, other: str) -> bool:
    """Tell whether two URIs lead to one folder, whatever scheme or slashes they are written with."""
    return bool(_qualified(spark, one) == _qualified(spark, other))


def _qualified(spark: SparkSession, path: str) -> str:
    system, folder = _open(spark, path)
    return str(system.makeQualified(folder).toString())


def _open(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(path)
    return folder.getFileSystem(spark._jsc.hadoopConfiguration()), folder
