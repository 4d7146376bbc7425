from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.condition.time_texts import has_moment
from dbt_zorder.pruning.plain_sql.catalyst import plan_query
from dbt_zorder.spark.jvm import sql_parser


def _analyzed(spark: SparkSession, sql: str) -> Any:
    return plan_query(spark, sql_parser(spark).parsePlan(sql)).analyzed()


@pytest.mark.parametrize(
    "test",
    [
        "'now' > ts",
        r"'\u006eow' > ts",
        "'no' 'w' > ts",
        "concat('n', 'ow') > ts",
        "(SELECT 'now') > ts",
        "cast(cast(reverse('won') AS varchar(3)) AS timestamp) > ts",
        "ts IN (timestamp'2024-01-01', 'today')",
    ],
)
def test_a_text_that_is_the_moment_is_found_however_it_is_written(spark: SparkSession, test: str) -> None:
    sql = f"SELECT * FROM (SELECT timestamp'2024-01-01' + make_dt_interval(id) AS ts FROM range(3)) WHERE {test}"
    assert has_moment(spark, _analyzed(spark, sql), "its text is not looked at")


def test_a_dataframe_that_is_a_view_has_no_text_and_is_looked_into(spark: SparkSession) -> None:
    rows = spark.sql("SELECT timestamp'2024-01-01' + make_dt_interval(id) AS ts FROM range(3)")
    rows.where("ts < 'now'").createOrReplaceTempView("seen_by_now")
    sql = "SELECT * FROM seen_by_now"
    assert has_moment(spark, _analyzed(spark, sql), sql)


@pytest.mark.parametrize("body", ["t < 'now'", "t < timestamp'now'", "t < (SELECT concat('to', 'day'))"])
def test_a_function_in_sql_is_looked_into(spark: SparkSession, body: str) -> None:
    if spark.version.startswith("3."):
        pytest.skip("no functions in SQL")
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION is_past(t TIMESTAMP) RETURNS BOOLEAN RETURN {body}")
    rows = f"SELECT t FROM (SELECT timestamp'2024-01-01' AS t) WHERE {body}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION past() RETURNS TABLE(t TIMESTAMP) RETURN {rows}")
    for sql in ("SELECT * FROM (SELECT timestamp'2024-01-01' AS ts) WHERE is_past(ts)", "SELECT * FROM past()"):
        assert has_moment(spark, _analyzed(spark, sql), sql)


@pytest.mark.parametrize(
    ("sql", "has_it"),
    [
        (
            "SELECT id FROM range(3) WHERE date'2024-01-01' + cast(id AS int) < '2024-01-02'",
            False,
        ),
        ("SELECT id FROM range(3) WHERE cast(concat('2024-01-0', id) AS date) < '2024-01-02'", False),
        ("SELECT id FROM range(3) WHERE string(id) <> 'nowhere'", False),
        ("SELECT id FROM range(3) WHERE string(id) <> 'now'", True),  # to be sure
        ("SELECT id, id % 2, count(*) FROM range(3) GROUP BY ROLLUP (id, id % 2)", False),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS b) UNPIVOT (v FOR name IN (a, b AS `now`))", True),  # to be sure
    ],
)
def test_other_texts_are_the_same_on_any_day(spark: SparkSession, sql: str, has_it: bool) -> None:
    assert has_moment(spark, _analyzed(spark, sql), sql) is has_it
