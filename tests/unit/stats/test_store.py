from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.stats import STATS_DIRECTORY
from dbt_zorder.stats.store import read_stats, stats_path, write_stats
from tests.support import settings


def test_stats_lie_inside_the_data_and_are_none_of_it(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "v[1] x")
    spark.range(10).write.parquet(folder)
    stats = spark.sql("SELECT concat('f', id) AS file_path, id AS row_count FROM range(3)")
    written = write_stats(stats, folder)
    assert isinstance(written, DataFrame)
    assert written.sort("file_path").collect() == stats.collect()
    assert stats_path(folder + "/") == f"{folder}/{STATS_DIRECTORY}"
    assert spark.read.parquet(folder.replace("[", "\\[").replace("]", "\\]")).count() == 10
    assert [row[0] for row in read_stats(spark, folder).collect()] == ["f0", "f1", "f2"]
    assert [file.suffix for file in Path(stats_path(folder)).glob("part-*")] == [".stats"]
    assert {file.parent for file in Path(folder).rglob("*.parquet")} == {Path(folder)}, "as DuckDB reads **/*.parquet"


def test_stats_are_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    for rows in (3, 2):
        write_stats(spark.sql(f"SELECT concat('f', id) AS file_path FROM range({rows})"), str(tmp_path))
    assert read_stats(spark, str(tmp_path)).count() == 2


def test_no_stats_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"There is no file in .*/nothing/_zorder_stats that names its columns"):
        read_stats(spark, str(tmp_path / "nothing"))


BOUNDS = """
    SELECT file_path, named_struct('ts', struct(low AS min_value, high AS max_value, 0L AS null_count),
        'd', struct(date(low) AS min_value, date(high) AS max_value, 0L AS null_count),
        'n', struct(1 AS min_value, 2 AS max_value, 0L AS null_count)) AS columns
    FROM VALUES ('new', timestamp'2024-01-01 00:00:00.000001', timestamp'2024-01-01 00:00:00.123456'),
        ('old', timestamp'1582-10-10 00:00:00.000001', timestamp'2024-01-01 00:00:00.123'),
        ('none', null, null) AS v(file_path, low, high)
"""
REBASE = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"}


@pytest.mark.parametrize("output", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
@pytest.mark.parametrize("rebase", [{}, REBASE])
def test_bounds_enclose_what_they_did_however_the_session_writes(
    spark: SparkSession, tmp_path: Path, output: str, rebase: dict[str, str]
) -> None:
    stats = spark.sql(BOUNDS)
    exact = stats.collect()
    with settings(spark, {"spark.sql.parquet.outputTimestampType": output, **rebase}):
        written = write_stats(stats, str(tmp_path))
    assert isinstance(written, DataFrame)
    assert written.schema.simpleString() == stats.schema.simpleString()
    found = {row.file_path: row["columns"] for row in written.collect()}
    for row in exact:
        for name in ("ts", "d"):
            was, now = row["columns"][name], found[row.file_path][name]
            # a file with one bound alone is read in any case
            assert now.min_value is None or (was.min_value is not None and now.min_value <= was.min_value)
            assert now.max_value == was.max_value or now.max_value > was.max_value
            assert now.null_count == was.null_count
        assert found[row.file_path].n == row["columns"].n
    assert found["new"].ts.min_value is not None
    assert found["none"].ts.max_value is None
