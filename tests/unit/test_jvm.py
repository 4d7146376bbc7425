"""Spark's classes behind a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from dbt_zorder.jvm import class_named, jvm_of
from tests.support import settings


def test_classes_go_by_the_sessions_settings_in_any_thread(spark: SparkSession) -> None:
    def fields() -> int:
        conf = class_named(spark._jvm, "org.apache.spark.sql.internal.SQLConf")
        return int(conf.get().maxToStringFields())

    def fields_behind_a_look() -> int:
        jvm_of(spark)
        return fields()

    with settings(spark, {"spark.sql.debug.maxToStringFields": "77"}), ThreadPoolExecutor(1) as dbts:
        assert dbts.submit(fields).result() == 25
        assert dbts.submit(fields_behind_a_look).result() == 77


def test_there_is_none_behind_another_server() -> None:
    assert jvm_of(object()) is None  # type: ignore[arg-type]
