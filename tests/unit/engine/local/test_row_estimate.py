from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes, most_bytes_of, texts_of


def test_what_arrow_and_spark_do_not_store_alike_stays_there(spark: SparkSession) -> None:
    assert estimated_row_bytes(spark.sql("SELECT 1 AS a, 'x' AS s, 1.5BD AS d, true AS b").schema) == 4 + 16 + 16 + 1
    assert estimated_row_bytes(spark.sql("SELECT true AS a").schema) == 32, "to place a row takes memory, too"
    for other in ("array(1)", "map(1, 2)", "named_struct('a', 1)", "INTERVAL '1' DAY", "NULL"):
        assert estimated_row_bytes(spark.sql(f"SELECT 1 AS a, {other} AS v").schema) is None


def test_the_memory_of_spark_is_a_limit_too(spark: SparkSession) -> None:
    assert most_bytes_of(spark, 1000) == 1000
    assert 10_000_000 < most_bytes_of(spark, 1 << 60) <= 1 << 28, "a quarter of spark.driver.maxResultSize"


def test_columns_of_text_are_texts_and_binaries(spark: SparkSession) -> None:
    assert texts_of(spark.sql("SELECT 1 AS a, 'x' AS s, X'00' AS b").schema) == ["s", "b"]
