from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt_zorder.stats import STATS_DIRECTORY
from dbt_zorder.stats.store import read_stats, stats_path, write_stats


def test_stats_lie_inside_the_data_and_are_none_of_it(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "v[1] x")
    spark.range(10).write.parquet(folder)
    stats = spark.sql("SELECT concat('f', id) AS file_path, id AS row_count FROM range(3)")
    written = write_stats(stats, folder)
    assert written.sort("file_path").collect() == stats.collect()
    assert stats_path(folder + "/") == f"{folder}/{STATS_DIRECTORY}"
    assert spark.read.parquet(folder.replace("[", "\\[").replace("]", "\\]")).count() == 10
    assert [row[0] for row in read_stats(spark, folder).collect()] == ["f0", "f1", "f2"]
    assert len(list(Path(stats_path(folder)).glob("*.parquet"))) == 1


def test_stats_are_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    for rows in (3, 2):
        write_stats(spark.sql(f"SELECT concat('f', id) AS file_path FROM range({rows})"), str(tmp_path))
    assert read_stats(spark, str(tmp_path)).count() == 2


def test_no_stats_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException):
        read_stats(spark, str(tmp_path / "nothing"))
