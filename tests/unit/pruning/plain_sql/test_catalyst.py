from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.plain_sql import catalyst
from dbt_zorder.pruning.plain_sql.catalyst import (
    UnfitError,
    find_mentions,
    find_query,
    find_scans,
    is_weaker,
    mark,
    plan_query,
    plan_statement,
)
from dbt_zorder.pruning.plans.tree import PlanTrees
from dbt_zorder.spark.jvm import sql_parser

T = "pruning_unit.t"


def _parsed(spark: SparkSession, sql: str) -> Any:
    return sql_parser(spark).parsePlan(sql)


def _scans(spark: SparkSession, sql: str) -> dict[int, list[catalyst.Scan]]:
    return find_scans(PlanTrees(plan_query(spark, _parsed(spark, sql)).optimizedPlan()))


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select * from a.b where c = 1", [("a.b", False)]),
        ("select * from a.`b c` AS d", [("a.`b c`", True)]),
        ("with x as (select * from y.x) select * from x, X z", [("y.x", False)]),
        ("select 'é😀', (select max(a) from p.q) from r.s where exists (select 1 from `u`)", ["p.q", "r.s", "`u`"]),
        ("select * from a.b as o (x, y)", [("a.b", True)]),
        ("from a.b |> where c = 1", [("a.b", False)]),
        ("select * from range(5)", []),
    ],
)
def test_mentions_lie_where_the_text_has_them(spark: SparkSession, sql: str, found: list[Any]) -> None:
    if "|>" in sql and spark.version < "4":
        pytest.skip("pipes are of Spark 4")
    there = find_mentions(plan_statement(spark, sql))
    wanted = [item if isinstance(item, tuple) else (item, False) for item in found]
    assert [(sql[place.start : place.stop], place.is_named) for place in there] == wanted


def test_a_mention_with_options_or_a_limit_stays(spark: SparkSession) -> None:
    for sql in ("select * from a.b tablesample (5 rows)", "select * from a.b with ('x' = '1')"):
        if "with" in sql and spark.version < "4":
            continue
        assert [place.stays for place in find_mentions(plan_statement(spark, sql))] == [True], sql
    with pytest.raises(UnfitError, match="reads a sample"):
        find_mentions(plan_statement(spark, "select * from a.b tablesample (5 percent) repeatable (1)"))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("select 1", "Project"),
        ("create table a.b using parquet as select 1 as c", "Project"),
        ("insert overwrite directory '/tmp/x' using parquet select 1", "Project"),
        ("insert overwrite table a.b partition (p = 1) select 1", "Project"),
        ("create view a.b as select 1 as c", None),
        ("cache table x as select 1", None),
        ("merge into a.b using a.c on b.x = c.x when matched then delete", None),
    ],
)
def test_the_query_of_a_statement(spark: SparkSession, sql: str, kind: str | None) -> None:
    found = find_query(spark, _parsed(spark, sql))
    assert (None if found is None else found.nodeName()) == kind


def test_what_a_mention_is_asked_for_stands_beside_its_mark(spark: SparkSession, table: str) -> None:
    one, two = (f"(select * from {T} where {mark(number)})" for number in (1, 2))
    found = _scans(spark, f"select x.a from {one} x left join {two} y on x.b = y.b and y.a > 3 where x.s = 'k'")
    assert {number: [scan.texts() for scan in of] for number, of in found.items()} == {
        1: [["(`s` = 'k')"]],
        2: [["(`a` > 3)"]],
    }


def test_a_test_of_two_marks_tells_nothing_of_either(spark: SparkSession, table: str) -> None:
    found = _scans(spark, f"select * from {T} where {mark(1)} and ({mark(2)} or a = 5) and b = 7")
    assert {number: [scan.tests for scan in of] for number, of in found.items()} == {1: [()], 2: [()]}


def test_a_filter_that_asks_more_than_the_scan_is_not_weaker(spark: SparkSession, table: str) -> None:
    sql = f"select a from {T} where {mark(0)} and a < 5 and st.f > 1 and ts < '2024-01-01'"
    ((scan,),) = _scans(spark, sql).values()
    frame = spark.table(T)
    for text in (" AND ".join(scan.texts()), "a < 5", "a < 5 AND a IS NOT NULL AND st.f > 1"):
        assert is_weaker(spark, frame.where(text), scan), text
    for text in ("a < 4", "a <= 5", "b < 5", "a < 5 AND st.g > 1", "ts < '2024-01-01 00:00:01'", "a < 5 AND n IS NULL"):
        assert not is_weaker(spark, frame.where(text), scan), text


def test_a_query_of_too_many_steps_is_left_alone(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalyst, "_NODES_AT_MOST", 3)
    with pytest.raises(UnfitError, match="more than 3 steps"):
        _scans(spark, f"select a from {T} where {mark(0)} union all select b from {T} where {mark(1)}")
