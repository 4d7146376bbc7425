from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.joins import sides
from dbt_zorder.pruning.plain_sql.statement import prepare, query
from tests.support import settings, unique

T = "pruning_unit.t"


@pytest.fixture
def dimension(spark: SparkSession, table: str) -> Iterator[str]:
    name = f"pruning_unit.{unique('dimension')}"
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS SELECT /*+ coalesce(1) */ id AS k, id div 10 AS g FROM range(1000)"
    )
    yield name
    spark.sql(f"DROP TABLE {name}")


def joined(dimension: str, what: str = "t.a", g: int = 1) -> str:
    return f"SELECT {what} FROM {T} t JOIN {dimension} d ON t.b = d.k WHERE d.g = {g}"


def file_of(spark: SparkSession, table: str) -> Path:
    (file,) = spark.table(table).inputFiles()
    return Path(file.removeprefix("file:").replace("///", "/"))


def test_another_statement_finds_the_rows_of_a_side(spark: SparkSession, dimension: str, runs: list[Any]) -> None:
    assert prepare(spark, joined(dimension)).reads == prepare(spark, joined(dimension, "count(*)")).reads != ()
    assert len(runs) == 1
    assert prepare(spark, joined(dimension, g=2)).reads
    assert len(runs) == 2


@pytest.mark.parametrize("change", ["INSERT INTO {} VALUES (995L, 1L)", "INSERT OVERWRITE {} VALUES (995L, 1L)"])
def test_a_side_that_changed_is_run_again(spark: SparkSession, dimension: str, runs: list[Any], change: str) -> None:
    assert query(spark, joined(dimension)).count()
    spark.sql(change.format(dimension))
    rows = sorted(query(spark, joined(dimension, "t.b")).collect())
    assert len(runs) == 2
    assert rows == sorted(spark.sql(joined(dimension, "t.b")).collect())
    assert (995,) in rows


def test_a_file_that_was_replaced_where_spark_does_not_list_it_again(
    spark: SparkSession, dimension: str, runs: list[Any]
) -> None:
    assert query(spark, joined(dimension)).count()
    file = file_of(spark, dimension)
    rows = pa.table({"k": pa.array(range(1000), pa.int64()), "g": pa.array([9 - k // 100 for k in range(1000)])})
    pq.write_table(rows, file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    found = sorted(query(spark, joined(dimension, "t.b")).collect())
    assert len(runs) == 2
    assert found == sorted(spark.sql(joined(dimension, "t.b")).collect())
    assert {row[0] // 100 for row in found} == {8}


def test_a_file_that_was_written_again_is_read_again(spark: SparkSession, dimension: str, runs: list[Any]) -> None:
    prepare(spark, joined(dimension))
    os.utime(file_of(spark, dimension), (1, 1))
    prepare(spark, joined(dimension))
    assert len(runs) == 2


def test_another_setting_runs_the_side_again(spark: SparkSession, dimension: str, runs: list[Any]) -> None:
    prepare(spark, joined(dimension))
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        prepare(spark, joined(dimension))
        assert len(runs) == 2


def test_few_values_are_kept(
    spark: SparkSession, dimension: str, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "VALUES_AT_MOST", 15)
    for g in (1, 2, 1):
        assert prepare(spark, joined(dimension, g=g)).reads
    assert len(runs) == 3
    assert len(sides._kept) == 1


@pytest.mark.parametrize(
    ("side", "is_run"),
    [
        ("SELECT k FROM {} LIMIT 3", False),
        ("SELECT k FROM {} ORDER BY g LIMIT 3", False),
        ("SELECT k FROM {} ORDER BY k LIMIT 3", True),
        ("SELECT k, g FROM {} ORDER BY g, k LIMIT 3", True),
        ("SELECT first(k) AS k FROM {} WHERE g < 5 GROUP BY g", False),
        ("SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY g % 2 ORDER BY g) AS n FROM {}) WHERE n = 1", False),
        ("SELECT k FROM (SELECT k, rank() OVER (PARTITION BY g % 2 ORDER BY k) AS n FROM {}) WHERE n = 1", True),
    ],
)
def test_a_side_whose_next_run_may_give_other_rows_excludes_no_file(
    spark: SparkSession, dimension: str, runs: list[Any], side: str, is_run: bool
) -> None:
    sql = f"SELECT t.a FROM {T} t JOIN ({side.format(dimension)}) s ON t.b = s.k"
    assert bool(prepare(spark, sql).reads) == bool(runs) == is_run
