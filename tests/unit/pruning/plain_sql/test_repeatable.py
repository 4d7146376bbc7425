from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.plain_sql.catalyst import UnfitError, plan_query
from dbt_zorder.pruning.plain_sql.repeatable import check_text, day_of, is_qualified, today
from dbt_zorder.spark.jvm import sql_parser


def _analyzed(spark: SparkSession, sql: str) -> Any:
    return plan_query(spark, sql_parser(spark).parsePlan(sql)).analyzed()


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
    assert is_qualified(sql, "t") is whole


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
