from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.jvm import sql_parser
from dbt_zorder.pruning.catalyst import UnfitError, executed
from dbt_zorder.pruning.steady import check_text, day_of, names_whole, today


def _analyzed(spark: SparkSession, sql: str) -> Any:
    return executed(spark, sql_parser(spark).parsePlan(sql)).analyzed()


@pytest.mark.parametrize(
    ("sql", "whole"),
    [
        ("select t.a from db.t", False),
        ("select db.t.a from db.t", True),
        ("select `db` . -- a comment\n `T` /* and another */ .a from db.t", True),
        ("select db.t.* from db.t", True),
        ("select db.tt.a, at.a from db.tt join db.t", False),
        ("select /*+ merge(x, db.t) */ 1 from db.t", True),
        ("select /*+ merge(t, db.tt) */ 1 from db.t", False),
        ("select /* db.t */ 1 from db.t", False),
        ('/* {"node_id": "model.t.x"} */ select t.a from db.t -- db.t.a', False),
        ("select 'db.t.a' from db.t where s = 'it''s \\' -- db.t.a'", False),
        ("select r'\\', db.t.a, '' from db.t", True),
        ("select '/*', db.t.a, '*/' from db.t", True),
    ],
)
def test_a_name_with_its_schema_is_found(sql: str, whole: bool) -> None:
    assert names_whole(sql, "t") is whole


def test_a_statement_that_asks_for_files_is_none_of_ours() -> None:
    check_text("select metadata from t")
    with pytest.raises(UnfitError, match="asks for _metadata itself"):
        check_text("select `_Metadata`.file_name from t")


@pytest.mark.parametrize("sql", ["select 1 as a", "select '2024-01-01 09:00', max(id) from range(5) group by id % 2"])
def test_most_statements_are_the_same_on_any_day(spark: SparkSession, sql: str) -> None:
    assert day_of(spark, _analyzed(spark, sql), sql) is None


def test_the_day_is_known_where_it_is_asked_for(spark: SparkSession) -> None:
    sql = "select 1 from range(5) where exists (select 1 where date_add(current_date(), 1) > date '2020-01-01')"
    assert day_of(spark, _analyzed(spark, sql), sql) == today(spark)
    assert spark.sql(f"select current_date() = {today(spark)}").collect()[0][0]


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
    with pytest.raises(UnfitError, match="depends on the moment"):
        day_of(spark, _analyzed(spark, sql), "its text is not looked at")


def test_a_dataframe_that_is_a_view_has_no_text_and_is_looked_into(spark: SparkSession) -> None:
    rows = spark.sql("SELECT timestamp'2024-01-01' + make_dt_interval(id) AS ts FROM range(3)")
    rows.where("ts < 'now'").createOrReplaceTempView("seen_by_now")
    sql = "SELECT * FROM seen_by_now"
    with pytest.raises(UnfitError, match="depends on the moment"):
        day_of(spark, _analyzed(spark, sql), sql)


@pytest.mark.parametrize("body", ["t < 'now'", "t < timestamp'now'", "t < (SELECT concat('to', 'day'))"])
def test_a_function_in_sql_is_looked_into(spark: SparkSession, body: str) -> None:
    if spark.version.startswith("3."):
        pytest.skip("no functions in SQL")
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION is_past(t TIMESTAMP) RETURNS BOOLEAN RETURN {body}")
    rows = f"SELECT t FROM (SELECT timestamp'2024-01-01' AS t) WHERE {body}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION past() RETURNS TABLE(t TIMESTAMP) RETURN {rows}")
    for sql in ("SELECT * FROM (SELECT timestamp'2024-01-01' AS ts) WHERE is_past(ts)", "SELECT * FROM past()"):
        with pytest.raises(UnfitError, match="depends on the moment"):
            day_of(spark, _analyzed(spark, sql), sql)


def test_dates_and_texts_that_are_none_of_time_are_the_same_on_any_day(spark: SparkSession) -> None:
    sql = "SELECT id FROM range(3) WHERE date'2024-01-01' + cast(id AS int) < '2024-01-02' AND string(id) <> 'nowhere'"
    with pytest.raises(UnfitError):  # to be sure: a text might be a time by other means
        day_of(spark, _analyzed(spark, sql), sql)
    assert day_of(spark, _analyzed(spark, sql.replace("nowhere", "elsewhere")), sql.replace("nowhere", "else")) is None
