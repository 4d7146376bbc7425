"""T8: every odd character in folders, file names and partition values; what is pruned equals what is not."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, scan, scan_sql
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats

NAMES = [
    "plain", "a b", "a%b", "a%20b", "a%2520b", "a+b", "é", "日本", "a:b", "a#b", "a?b", "a[b]", "a{b}", "a*b", "a'b", 'a"b', "a=b",
    "a&b", "a;b", "a,b", "a|b", "a~b", "a@b", "a$b", "a^b", "a(b)", "a`b", "a\\b", "😀", "-- a",
]  # fmt: skip
DATA = "SELECT /*+ repartition_by_range(3, a) */ cast(id AS int) a, concat('v', id) s FROM range(30)"


@pytest.fixture(scope="module", autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE IF NOT EXISTS paths")
    yield
    spark.sql("DROP DATABASE paths CASCADE")


def _assert_pruned(spark: SparkSession, table: str, predicate: str) -> None:
    expected = sorted(spark.table(table).where(predicate).collect())
    assert sorted(scan(spark, table, predicate).collect()) == expected
    assert sorted(spark.sql(f"SELECT * FROM {scan_sql(spark, table, predicate)}").collect()) == expected


@pytest.mark.parametrize("name", NAMES)
def test_folder_of_the_table(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = f"paths.t{NAMES.index(name)}"
    # Hadoop has no colon at the start of a path's part, nor a backslash at all
    folder = tmp_path / name
    if name in {"a\\b"}:
        pytest.skip("Hadoop takes a backslash for a separator")
    try:
        spark.sql(f"CREATE TABLE {table} (a INT, s STRING) USING parquet LOCATION {quote_string(str(folder))}")
        spark.sql(f"INSERT INTO {table} {DATA}")
        spark.table(table).count()
    except AnalysisException:
        assert set(name) & set("?[{*")
        pytest.skip("Spark itself takes the table's folder for a pattern")
    where = next(str(r[1]) for r in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect() if r[0] == "Location")
    write_stats(collect(spark, table, ["a", "s"]), where)
    assert scan(spark, table, "a = 5").collect() == [(5, "v5")]
    explained = explain(spark, table, "a = 5")
    assert (explained.files_read, explained.files_total, explained.fresh) == (1, 3, True), explained.reason


def test_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    """The same file names occur in every partition: only the whole path tells them apart."""
    values = [name for name in NAMES if name != "a\\b"]
    pairs = ", ".join(f"({number}, {quote_string(value)})" for number, value in enumerate(values))
    spark.sql("CREATE TABLE paths.p (a INT, p STRING) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO paths.p SELECT /*+ coalesce(1) */ * FROM VALUES {pairs}")
    spark.sql(f"INSERT INTO paths.p SELECT /*+ coalesce(1) */ a + 100, p FROM VALUES {pairs} AS t(a, p)")
    where = next(str(r[1]) for r in spark.sql("DESCRIBE TABLE EXTENDED paths.p").collect() if r[0] == "Location")
    write_stats(collect(spark, "paths.p", ["a"]), where)
    for number, value in enumerate(values):
        assert [row.p for row in scan(spark, "paths.p", f"a = {number}").collect()] == [value]
        if number % 6 == 0:
            _assert_pruned(spark, "paths.p", f"a >= 100 AND p = {quote_string(value)}")
    explained = explain(spark, "paths.p", "a = 3")
    assert (explained.files_read, explained.files_total) == (1, 2 * len(values))


def test_self_join_alias_view_and_cached_table(spark: SparkSession) -> None:
    table = "paths.joined"
    spark.sql(f"CREATE TABLE {table} USING parquet AS {DATA}")
    where = next(str(r[1]) for r in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect() if r[0] == "Location")
    write_stats(collect(spark, table, ["a", "s"]), where)
    left, right = (
        scan_sql(spark, table, predicate, alias) for predicate, alias in (("l.a < 5", "l"), ("r.a > 2", "r"))
    )
    assert spark.sql(f"SELECT l.a FROM {left} JOIN {right} ON l.a = r.a ORDER BY 1").collect() == [(3,), (4,)]
    spark.catalog.cacheTable(table)
    try:
        _assert_pruned(spark, table, "a = 5")
    finally:
        spark.catalog.uncacheTable(table)
