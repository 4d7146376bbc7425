"""Which sides of a merge's joins each task gets whole."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.tables.parquet.merge import small_side
from dbt_zorder.tables.parquet.merge.small_side import sent_whole


def is_hinted(rows: DataFrame) -> bool:
    return "ResolvedHint" in rows._jdf.queryExecution().analyzed().toString()


def test_few_rows_are_sent_whole(spark: SparkSession) -> None:
    assert is_hinted(sent_whole(spark.range(10), 10))
    assert is_hinted(sent_whole(spark.sql("SELECT array(id) AS a FROM range(10)"), 20_000))


def test_more_rows_are_sent_whole_if_they_fit(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.range(1_000_000)
    assert is_hinted(sent_whole(rows, 1_000_000))
    assert not is_hinted(sent_whole(rows, 100_000_000))
    monkeypatch.setattr(small_side, "_MOST_FILE_BYTES", 1 << 20)
    assert not is_hinted(sent_whole(rows, 1_000_000))


def test_rows_of_unclear_width_are_left_to_spark(spark: SparkSession) -> None:
    rows = spark.sql("SELECT make_ym_interval(1) AS i FROM range(30000)")
    assert not is_hinted(sent_whole(rows, 30_000))
