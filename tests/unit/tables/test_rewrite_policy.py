from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.state import measure
from dbt_zorder.tables.rewrite_policy import Overlap, expected
from tests.support import unique
from tests.unit.tables.parquet.batches import made, rows


def summary(files: int, bytes_: int, **touched: float) -> Summary:
    return Summary(files, 100 * files, bytes_, touched)


@pytest.mark.parametrize(
    ("built", "partitions", "files", "wanted"),
    [
        (summary(16, 1, a=4.0, b=4.0), 1, [64], {"a": 8.0, "b": 8.0}),
        (summary(16, 1, a=4.0, b=5.0), 1, [16], {"a": 4.0, "b": 5.0}),
        (summary(16, 1, a=8.0, b=8.0), 4, [4] * 8, {"a": 16.0, "b": 16.0}),
        (summary(1, 1, a=1.0, b=1.0), 1, [9], {"a": 3.0, "b": 3.0}),
        (summary(8, 1, a=1.0), 1, [80], {"a": 1.0}),
        (summary(0, 0), 1, [4], {"a": 2.0, "b": 2.0}),
        (summary(100, 1, a=10.0, b=10.0), 1, [1], {"a": 1.0, "b": 1.0}),
    ],
)
def test_what_a_rewrite_is_expected_to_give(
    built: Summary, partitions: int, files: list[int], wanted: dict[str, float]
) -> None:
    columns = list(built.point_query_files) or ["a", "b"]
    assert expected(built, partitions, files, columns) == wanted


@pytest.mark.parametrize(
    ("touched", "bytes_now", "due"), [(6.1, 200, True), (5.9, 200, False), (6.1, 199, False), (40.0, 1000, True)]
)
def test_a_rewrite_is_due_when_much_is_gained_and_the_table_has_doubled(
    touched: float, bytes_now: int, due: bool
) -> None:
    now = summary(10, bytes_now, a=touched, b=1.0)
    assert Overlap(now, 100, 10, {"a": 4.0, "b": 4.0}).is_due is due


def test_an_empty_table_is_not_due() -> None:
    assert Overlap(summary(0, 0), 0, 1, {}).ratio == 1.0


@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_a_table_is_measured(spark: SparkSession, database: str, partition_by: tuple[str, ...]) -> None:
    table = TableName(database, unique("t"))
    wanted = made(spark, table, rows(0, 300), files=2, partition_by=partition_by)
    info = describe(spark, table)
    assert info is not None
    fresh = measure(spark, table, info, wanted.spec)
    assert fresh.ratio == pytest.approx(1.0, abs=0.01)
    assert fresh.built_bytes == fresh.now.bytes
    append(spark, spark.sql(rows(300, 600)), wanted)
    later = measure(spark, table, info, wanted.spec)
    assert later.ratio > fresh.ratio
    assert later.files_after == fresh.now.files == (6 if partition_by else 2)
    assert later.built_bytes == fresh.now.bytes < later.now.bytes
