"""Hadoop's client in the session's JVM: the file system of a path."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named
from dbt_zorder.spark.local_disk import is_known_here


def open_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path as that takes it.

    It is opened by the settings of the session, as Spark's own writers do: who has no more than those has keys there,
    as by ``SET fs.s3a.access.key``. To put them together takes a millisecond, which a disk needs not.
    """
    place = class_named(spark._jvm, "org.apache.hadoop.fs.Path")(path)
    if is_known_here(spark, path):
        return place.getFileSystem(spark._jsc.hadoopConfiguration()), place
    return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place
