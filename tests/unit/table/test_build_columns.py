"""What the columns of a table may be called, and of which types, where it is built by them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.table.batch import Batch
from dbt_zorder.table.build import BuildReport, build
from dbt_zorder.table.incremental import increment
from dbt_zorder.table.request import BuildRequest
from dbt_zorder.table.stats_relation import stats_table
from tests.support import unique

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def table(database: str) -> TableName:
    return TableName(database, unique("t"))


def request(table: TableName, by: tuple[str, ...], **more: Any) -> BuildRequest:
    return BuildRequest(table, LayoutSpec(by=by, files=4), **more)


def run(spark: SparkSession, table: TableName, query: str, **more: Any) -> BuildReport:
    return build(spark, spark.sql(query), request(table, **more))


@pytest.mark.parametrize("column", ["a.b", "it's", "sp ace", "ünï 漢", "tick`s", "UPPER", "__zorder_key0"])
def test_columns_may_be_called_anything(spark: SparkSession, table: TableName, column: str) -> None:
    quoted = "`" + column.replace("`", "``") + "`"
    for _ in range(2):
        report = run(spark, table, f"SELECT id AS {quoted}, 1 AS x FROM range(50)", by=(quoted,))
    assert spark.table(table.sql).columns == [column, "x"]
    assert report.summary.point_query_files == {column: 1.0}


def test_every_type_that_can_be_ordered_is_built(spark: SparkSession, table: TableName) -> None:
    query = """SELECT cast(id AS tinyint) t, cast(id AS decimal(38, 5)) d, cast(id AS float) f, id % 2 = 0 b,
      cast(timestamp_seconds(id) AS timestamp_ntz) n, timestamp_seconds(id) ts, INTERVAL '1' SECOND * id i,
      INTERVAL '1' MONTH * id m, cast(id AS binary) x, array(id) arr, named_struct('q r', named_struct('z', id)) st,
      cast(id AS string) COLLATE UTF8_LCASE c, map(id, 1) other FROM range(100)"""
    for by in (("t", "d", "f", "b", "n", "ts", "i", "m"), ("x", "arr", "st.`q r`.z", "c")):
        report = run(spark, table, query, by=by, stats_columns=("st",))
        assert (report.summary.files, report.summary.rows) == (4, 100)


@pytest.mark.parametrize("by", ["st", "arr"])
def test_a_column_that_only_begins_with_an_order_is_built_by(spark: SparkSession, table: TableName, by: str) -> None:
    struct = "named_struct('x', id % 100, 'm', map(1, id))"
    for _ in range(2):
        report = run(spark, table, f"SELECT id, {struct} AS st, array({struct}) AS arr FROM range(500)", by=(by, "id"))
    assert spark.table(table.sql).count() == report.summary.rows == 500
    found = spark.table(stats_table(table).sql).select(f"columns.{by}.*")
    assert {tuple(row) for row in found.collect()} == {(None, None, 0)}
    assert list(report.summary.point_query_files) == ["id"]
    batch = spark.sql(f"SELECT id, {struct} AS st, array({struct}) AS arr FROM range(500, 550)")
    assert increment(spark, batch, request(table, (by,)), Batch()).appended is not None
    assert spark.table(table.sql).count() == 550
