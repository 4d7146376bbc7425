"""Which paths lie on this machine's own disk, where this process does in microseconds what it would ask the JVM for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.jvm import class_named

_OWN = {"org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"}
"""Hadoop's file system of this machine, and Hive's, which passes all on to it."""


@dataclass(frozen=True)
class Place:
    """A path on this machine's disk.

    Attributes:
        path: absolute.
        uri: the same as Spark lists it, special characters encoded.
        mode: rights of a file that Spark would make there.
    """

    path: str
    uri: str
    mode: int


def on_disk(spark: SparkSession, path: str) -> Place | None:
    """Return where a path of Spark's lies on this machine; None if elsewhere, or if this process has no JVM to ask."""
    jvm: Any = getattr(spark, "_jvm", None)
    context: Any = getattr(spark, "_jsc", None)
    if jvm is None or context is None:
        return None
    try:
        place = class_named(jvm, "org.apache.hadoop.fs.Path")(path)
        conf = context.hadoopConfiguration()
        scheme = place.toUri().getScheme()
        # to open another file system may take a login
        if (scheme or class_named(jvm, "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf).getScheme()) != "file":
            return None
        system = place.getFileSystem(conf)
        if system.getClass().getName() not in _OWN:
            return None
        uri = system.makeQualified(place).toUri()
        umask = class_named(jvm, "org.apache.hadoop.fs.permission.FsPermission").getUMask(conf).toShort()
    except Exception:  # no file system for it, or another machine in its name: whoever uses it will say so
        return None
    return Place(os.path.normpath(uri.getPath()), f"file:{uri.getRawPath().rstrip('/')}", 0o666 & ~umask)
