"""Spark's classes behind a session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import active, class_named, jvm_of
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


def test_a_session_is_active_for_a_while(spark: SparkSession) -> None:
    def now() -> Any:
        found = spark._jsparkSession.getActiveSession()
        return found.get() if found.isDefined() else None

    other = spark.newSession()

    def in_a_thread() -> None:
        assert now() is None
        with active(other):
            assert now().equals(other._jsparkSession)
            with active(spark):
                assert now().equals(spark._jsparkSession)
            assert now().equals(other._jsparkSession)
        assert now() is None

    with ThreadPoolExecutor(1) as pool:
        pool.submit(in_a_thread).result()
    remote: Any = object()
    with active(remote):
        pass
