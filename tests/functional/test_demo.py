"""The storage of the demo: Spark writes there and reads back, and each request waits."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from dbt_zorder.api import query, save_table
from integration_tests.demo.http_storage import serve

DELAY = 0.05


def test_spark_reads_what_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    with serve(tmp_path) as storage:
        place = f"{storage.address}/with space/a%b=c"
        spark.range(1000).repartition(3).write.parquet(place)
        spark.range(1000, 2000).coalesce(1).write.mode("append").parquet(place)
        assert spark.read.parquet(place).selectExpr("sum(id)", "count(*)").first() == (1999000, 2000)
        spark.range(7).write.mode("overwrite").parquet(place)
        assert spark.read.parquet(place).count() == 7
        assert len([*tmp_path.rglob("*.parquet")]) == len([*tmp_path.glob("with space/a%b=c/*.parquet")]) > 0


def test_each_request_waits_and_files_left_out_make_none(spark: SparkSession, tmp_path: Path) -> None:
    with serve(tmp_path) as storage:
        spark.sql(f"create schema far location '{storage.address}/far'")
        name = "far.t"
        save_table(
            spark.range(4000).selectExpr("cast(id as int) as a", "cast(id % 50 as int) as b"),
            name,
            ["a", "b"],
            files=16,
        )
        where, requests = "b = 7", {}
        for way in ("plain", "pruned"):
            storage.delay = 0
            for _ in range(2):
                frame = (
                    spark.table(name).where(where)
                    if way == "plain"
                    else query(spark, f"select * from {name} where {where}")
                )
                before, started = storage.requests, time.monotonic()
                assert len(frame.collect()) == 80
                requests[way] = storage.requests - before
                seconds = time.monotonic() - started
                storage.delay = DELAY
            assert seconds > DELAY
        assert requests["pruned"] < requests["plain"] / 2
        spark.sql("drop schema far cascade")
