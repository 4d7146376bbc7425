"""Builds of queries that are hard to lay out, by all ways there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.build import build
from tests.support import rows_read, same_rows

pytestmark = pytest.mark.usefixtures("way")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, rand() AS r, uuid() AS u FROM range(0, 20000, 1, 4)", "function of chance"),
        ("SELECT id, rand() AS r, 'u' AS u FROM range(0, 20000, 1, 4) WHERE rand() < 2", "function of chance"),
        ("SELECT id, count(*) / 7 AS r, 'u' AS u FROM range(0, 20000, 1, 4) GROUP BY id", "aggregate"),
    ],
)
def test_a_query_that_gives_other_values_each_time_it_runs_loses_and_doubles_no_row(
    spark: SparkSession, table: TableName, query: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dbt_zorder")
    report = build(spark, spark.sql(query), BuildRequest(table, LayoutSpec(["r", "u"], 8)))
    assert f"the query holds a {reason}: its result is kept" in caplog.text
    rows = spark.table(table.sql)
    assert report.summary.rows == rows.count() == rows.select("id").distinct().count() == 20_000
    # what stats say is of the rows that are there, not of another run
    some = rows.where("r < 0.3").count()
    assert scan(spark, table.sql, "r < 0.3").count() == some


def test_a_plain_scan_is_not_kept_and_the_log_says_so(
    spark: SparkSession, table: TableName, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dbt_zorder")
    build(spark, spark.sql("SELECT id FROM range(100) WHERE id > 3"), BuildRequest(table, LayoutSpec(["id"], 2)))
    assert "the query is a plain scan: it is not kept" in caplog.text


@pytest.mark.parametrize(
    ("curve", "encoding"),
    [("zorder", "rank"), ("zorder", "bits"), ("hilbert", "rank"), ("hilbert", "bits"), ("linear", "rank")],
)
@pytest.mark.parametrize(
    "keys",
    [
        "7 AS a, 'x' AS b",
        "CAST(NULL AS int) AS a, CAST(NULL AS string) AS b",
        "if(id % 10 < 4, 0, id) AS a, if(id % 10 < 4, 'heavy', string(id)) AS b",
        "double('NaN') AS a, if(id % 2 = 0, NULL, true) AS b",
    ],
)
def test_keys_that_part_little_or_nothing_lose_no_row(
    spark: SparkSession, table: TableName, keys: str, curve: str, encoding: str
) -> None:
    query = f"SELECT id, {keys} FROM range(0, 4000, 1, 3)"
    spec = LayoutSpec(["a", "b"], 4, curve=curve, encoding=encoding)
    report = build(spark, spark.sql(query), BuildRequest(table, spec))
    assert report.summary.files == 4
    assert same_rows(spark.table(table.sql), spark.sql(query))


def test_a_thousand_partitions_get_a_file_each(spark: SparkSession, table: TableName) -> None:
    query = "SELECT id, pmod(hash(id), 500) AS a, if(id % 1200 = 7, NULL, id % 1200) AS p FROM range(0, 12000, 1, 4)"
    report = build(spark, spark.sql(query), BuildRequest(table, LayoutSpec(["a", "id"], partition_by=["p"])))
    assert report.summary.files == 1200
    assert same_rows(spark.table(table.sql), spark.sql(query))
    info = describe(spark, table)
    assert info is not None
    assert len(list(Path(info.location.removeprefix("file:")).glob("p=*"))) == 1200
    assert scan(spark, table.sql, "p = 99 AND id >= 0").count() == 10


@pytest.mark.parametrize("column", ["a", "t", "at", "n"])
def test_plain_sql_passes_over_pages_by_their_min_and_max(spark: SparkSession, table: TableName, column: str) -> None:
    """Of one file, whose min and max allow every value that is asked for; by whoever wrote it."""
    query = (
        "SELECT id, pmod(hash(id), 20000) AS a, sha1(string(id)) AS t,"
        " timestamp_seconds(pmod(hash(id, 1), 20000)) AS at, CAST(pmod(hash(id, 2), 20000) AS decimal(9, 2)) AS n"
        " FROM range(0, 40000, 1, 2)"
    )
    spec = LayoutSpec([column, "id"], 1, page_rows=500)
    build(spark, spark.sql(query), BuildRequest(table, spec, options={"parquet.page.row.count.limit": "500"}))
    rows = spark.table(table.sql)
    value = rows.where("id = 12345").select(column).collect()[0][0]
    asked = rows.where(f.col(column) == f.lit(value)).select("id", column)
    found = asked.collect()
    assert {row["id"] for row in found} >= {12345}
    assert rows_read(asked) < 40_000 / 4, "of some 80 pages of 500 rows a query on one of two columns needs 9"
