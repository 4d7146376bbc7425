from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.plain_sql.catalyst import mark
from dbt_zorder.pruning.plans.tree import read_tree
from dbt_zorder.pruning.top_rows.limits import Limit, find_limits


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """No statistics are read here."""


def found(spark: SparkSession, sql: str) -> list[Limit]:
    """Return the limits of a query over the marked table ``{t}``."""
    text = sql.replace("{t}", f"(select * from pruning_unit.t where {mark(0)})")
    return list(find_limits(read_tree(spark.sql(text)._jdf.queryExecution().optimizedPlan())).values())


@pytest.mark.parametrize(
    ("sql", "says", "order"),
    [
        ("select a from {t} order by ts desc limit 10", "top 10 by ts", (True, False, False)),
        ("select a from {t} order by ts limit 10 offset 5", "top 15 by ts", (False, True, False)),
        ("select a, s from {t} order by n desc nulls first, a limit 3", "top 3 by n", (True, True, False)),
        ("select a, s from {t} order by n asc nulls last limit 3", "top 3 by n", (False, False, False)),
        ("select k from (select a as k, n as w from {t}) order by w limit 3", "top 3 by n", (False, True, False)),
        ("select k from (select a as k from {t} where s > 'k5') order by k limit 3", "top 3 by a", (False, True, True)),
        ("select a from {t} where n is not null order by n limit 3", "top 3 by n", (False, False, False)),
        ("select a from {t} where s is not null order by n limit 3", "top 3 by n", (False, True, True)),
        ("select a from {t} limit 2500 offset 10", "limit of 2,510", (False, False, False)),
        ("select * from (select * from {t} order by a limit 7) where b = 3", "top 7 by a", (False, True, False)),
        ("select max(a) from (select * from {t} order by a limit 7)", "top 7 by a", (False, True, False)),
        ("select * from (select * from {t} order by a limit 7) order by b limit 2", "top 7 by a", (False, True, False)),
    ],
)
def test_a_limit_over_a_scan_is_found(
    spark: SparkSession, table: str, sql: str, says: str, order: tuple[bool, bool, bool]
) -> None:
    (limit,) = found(spark, sql)
    assert (str(limit), (limit.falls, limit.nulls_first, limit.is_filtered)) == (says, order)


@pytest.mark.parametrize(
    "sql",
    [
        "select a from {t} order by a + 1 limit 3",
        "select a from {t} order by st.f limit 3",
        "select a from {t} where a > 5 limit 3",
        "select a from {t} order by a",
        "select a from {t} order by a offset 3",
        "select a from {t} sort by a limit 3",
        "select n, count(*) from {t} group by n order by n limit 3",
        "select distinct n from {t} order by n limit 3",
        "select *, row_number() over (partition by d order by a) r from {t} order by ts limit 3",
        "select t.a from {t} t join range(500) r on t.a = r.id order by t.a limit 3",
        "select a from {t} t left join range(500) r on t.a = r.id limit 3",
        "select a from {t} union all select id from range(3) order by a limit 3",
        "select e from {t} lateral view explode(array(a, b)) x as e order by ts limit 3",
        "select a from {t} limit 0",
    ],
)
def test_a_limit_over_anything_else_is_left(spark: SparkSession, table: str, sql: str) -> None:
    assert found(spark, sql) == []
