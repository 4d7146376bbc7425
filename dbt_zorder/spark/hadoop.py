"""Open paths by Hadoop's client in the session's JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named
from dbt_zorder.spark.local_disk import is_known_here


def open_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path as Hadoop's object.

    The session's settings open it, as for Spark's own writers. They may contain the only keys, as after ``SET
    fs.s3a.access.key``. Collecting them needs a millisecond, which a local disk can skip.
    """
    place = class_named(spark._jvm, "org.apache.hadoop.fs.Path")(path)
    if is_known_here(spark, path):
        return place.getFileSystem(spark._jsc.hadoopConfiguration()), place
    return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place
