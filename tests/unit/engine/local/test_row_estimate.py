from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.local import row_estimate as module
from dbt_zorder.engine.local.row_estimate import measure_few, most_bytes_of, texts_of, width_of

MOST = 10_000_000


def test_a_query_is_counted_where_its_files_do_not_tell_that_it_is_small(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(1000).write.mode("overwrite").parquet(str(tmp_path))
    scan = spark.read.parquet(str(tmp_path))

    def found(frame: DataFrame, most: int, *, kept: bool = False, parted: bool = False) -> tuple[bool, int | None]:
        return measure_few(frame, most, kept=kept, parted=parted)[:2]

    assert found(scan, MOST) == (True, None)
    assert found(scan, MOST, kept=True) == (True, 1000)
    assert found(scan, 31_999, kept=True) == (False, 1000)
    assert found(scan, 0) == (False, None)
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    assert found(scan.where("id < 10"), 320) == (True, 10)
    assert found(scan, 320) == (False, 1000)
    assert found(scan, MOST, parted=True) == (False, None), "its partitions are counted later"
    text = scan.selectExpr("id", "if(id % 2 = 0, NULL, repeat('x', cast(id AS int))) AS t", "cast(id AS string) AS u")
    for kept in (True, False):
        assert found(text, 290_000, kept=kept) == (True, 1000)
        assert found(text, 280_000, kept=kept) == (False, 1000), "long text is measured"
    assert measure_few(text, MOST, kept=True, parted=False)[2] == 1000 * 32 + 250_000 + 2890


def test_what_arrow_and_spark_do_not_store_alike_stays_there(spark: SparkSession) -> None:
    assert width_of(spark.sql("SELECT 1 AS a, 'x' AS s, 1.5BD AS d, true AS b").schema) == 4 + 16 + 16 + 1
    assert width_of(spark.sql("SELECT true AS a").schema) == 32, "to place a row takes memory, too"
    for other in ("array(1)", "map(1, 2)", "named_struct('a', 1)", "INTERVAL '1' DAY", "NULL"):
        assert width_of(spark.sql(f"SELECT 1 AS a, {other} AS v").schema) is None


def test_the_memory_of_spark_is_a_limit_too(spark: SparkSession) -> None:
    assert most_bytes_of(spark, 1000) == 1000
    assert 10_000_000 < most_bytes_of(spark, 1 << 60) <= 1 << 28, "a quarter of spark.driver.maxResultSize"


def test_many_columns_of_text_are_counted_as_such(spark: SparkSession) -> None:
    assert texts_of(spark.sql("SELECT 1 AS a, 'x' AS s, X'00' AS b").schema) == ["s", "b"]
    text = spark.range(10).selectExpr("string(id) AS a", "string(id) AS b")
    assert measure_few(text, 100, kept=True, parted=False)[0] is False


def test_a_table_of_text_that_is_large_is_not_read_to_learn_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(1000).selectExpr("string(id) AS a", "string(id) AS b").write.parquet(str(tmp_path / "t"))
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr(DataFrame, "agg", lambda *_: pytest.fail("read"))
    assert measure_few(spark.read.parquet(str(tmp_path / "t")), 10_000, kept=False, parted=False)[:2] == (False, 1000)
