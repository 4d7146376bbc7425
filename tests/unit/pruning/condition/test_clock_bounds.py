from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.pruning import explain, scan, scan_sql
from dbt_zorder.pruning.condition.clock_bounds import _Moment, _slack, _with_bounds, with_clock_bounds
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import Compare, Node, to_sql
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats
from tests.support import settings
from tests.unit.pruning.helpers import files_read, location

SCHEMA = t.StructType([t.StructField("ts", t.TimestampType()), t.StructField("d", t.DateType())])
NOW = _Moment(dt.date(2026, 11, 28), dt.datetime(2026, 11, 28, 9), dt.datetime(2026, 11, 28, 10))
T = "pruning_unit.lately"


def _tree(predicate: str) -> Node:
    parsed = parse(predicate)
    assert parsed is not None
    return read(parsed, Names(SCHEMA, False, (), frozenset()))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("ts > now()", "`ts` > TIMESTAMP_LTZ '2026-11-27 09:00:00Z'"),
        ("now() <= ts", "TIMESTAMP_LTZ '2026-11-27 09:00:00Z' <= `ts`"),
        ("not (ts < current_timestamp())", "NOT (`ts` < TIMESTAMP_LTZ '2026-11-27 09:00:00Z')"),
        ("ts >= current_timestamp - interval 7 days", "`ts` >= (TIMESTAMP_LTZ '2026-11-26 09:00:00Z' - (INTERVAL"),
        ("d >= date_sub(current_date(), 30)", "`d` >= date_sub(DATE '2026-11-26', 30)"),
        ("d > current_date - 3", "`d` > (DATE '2026-11-26' - 3)"),
        ("d > curdate() - interval 1 month", "`d` > (DATE '2026-11-22' - (INTERVAL"),
        ("d > add_months(current_date, -1)", "`d` > add_months(DATE '2026-11-22', (- 1))"),
        ("ts >= date_trunc('day', now())", "`ts` >= date_trunc('day', TIMESTAMP_LTZ '2026-11-26 09:00:00Z')"),
        ("ts > localtimestamp()", "`ts` > TIMESTAMP_NTZ '2026-11-27 10:00:00'"),
        ("d between current_date and current_date", "(`d` >= DATE '2026-11-27') AND (`d` <= "),
        ("d > cast(now() as date)", "`d` > CAST(TIMESTAMP_LTZ '2026-11-26 09:00:00Z' AS DATE)"),
    ],
)
def test_a_lower_bound_is_an_earlier_moment(predicate: str, expected: str) -> None:
    assert to_sql(_with_bounds(_tree(predicate), NOW, negated=False), top=True).startswith(expected)


@pytest.mark.parametrize(
    "predicate",
    [
        "ts < now()",
        "ts <= now() - interval 7 days",
        "not (ts > now())",
        "now() > ts",
        "d = current_date",
        "d <=> current_date",
        "d in (current_date)",
        "d <> current_date",
        "(ts > now()) = true",
        "(ts > now()) is null",
        "ts > cast(now() as string)",
        "d > date_sub('2024-01-01', day(current_date))",
        "d > date '2024-01-01' - datediff(current_date, d)",
        "ts - (now() - ts) > now()",
        "ts > greatest(now(), ts)",
        "d > date '2030-01-01' - (current_date - date '2020-01-01')",
    ],
)
def test_any_other_use_of_the_clock_stays(predicate: str) -> None:
    tree = _tree(predicate)
    assert _with_bounds(tree, NOW, negated=False) == tree


BOUNDS = [
    "now() - interval 7 days",
    "now() - interval 1 month",
    "now() + interval 3 months - interval 1 day",
    "date_trunc('hour', now()) - interval 30 days",
    "date_trunc('month', now() - interval 5 days)",
    "current_date - interval 1 month",
    "add_months(current_date, -1)",
    "last_day(add_months(current_date, 1))",
    "to_date(now() - interval 1 year)",
    "timestamp(current_date - 1)",
    "trunc(current_date, 'week')",
]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Apia", "Asia/Beirut", "America/St_Johns"])
def test_a_bound_is_never_less_after_its_slack(spark: SparkSession, zone: str) -> None:
    """Try all hours of the years around the greatest changes of a clock, each against all that are later."""
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        columns = []
        for number, bound in enumerate(BOUNDS):
            tree = _tree(f"ts > {bound}")
            assert isinstance(tree, Compare)
            days = _slack(tree.right)
            assert days is not None
            for name, days_before in (("now", 0), ("before", days)):
                moment = f"(t - make_dt_interval(0, {24 * days_before}))"
                value = bound.replace("now()", moment).replace("current_date", f"cast({moment} as date)")
                columns.append(f"cast({value} as timestamp) {name}{number}")
        moments = spark.sql("select timestamp_seconds(1322000000 + id * 1700) t from range(18600)")
        frame = moments.selectExpr("t", *columns)
        over = "over (order by t desc rows between unbounded preceding and current row)"
        later = [f"min(now{number}) {over} least{number}" for number in range(len(BOUNDS))]
        checks = [f"count_if(before{number} > least{number})" for number in range(len(BOUNDS))]
        found = frame.selectExpr("*", *later)
        assert list(found.selectExpr(*checks).collect()[0]) == [0] * len(BOUNDS)


@pytest.fixture(scope="module")
def lately(spark: SparkSession, table: str) -> str:
    """A table of eight files, with an hour of the last 41 days in each row."""
    spark.sql(
        f"""create table {T} using parquet as select /*+ repartition_by_range(8, a) */ id a,
        now() - make_dt_interval(0, cast(id as int), 30) ts, date_sub(current_date(), cast(id / 24 as int)) d
        from range(1000)"""
    )
    write_stats(collect(spark, T, ["a", "ts", "d"]), location(spark, T))
    return T


@pytest.mark.parametrize(
    ("predicate", "most"),
    [
        ("ts >= now() - interval 3 days", 2),
        ("ts >= current_timestamp - interval 3 days and ts <= now()", 2),
        ("d >= date_sub(current_date(), 3)", 2),
        ("ts > date_sub(current_date, 3)", 2),
        ("ts >= now() - interval 3 days or a = 999", 3),
        ("ts <= now() - interval 30 days", 8),
        ("d = current_date", 8),
    ],
)
def test_a_scan_reads_the_last_days(spark: SparkSession, lately: str, predicate: str, most: int) -> None:
    rows = scan(spark, T, predicate)
    whole = spark.table(T).where(predicate)
    read = files_read(rows)
    assert read <= most
    assert (read == 8) == (most == 8)
    assert sorted(row.a for row in rows.collect()) == sorted(row.a for row in whole.collect())
    assert "now()" not in predicate or "now()" in scan_sql(spark, T, predicate)


def test_another_zone_reads_all(spark: SparkSession, lately: str) -> None:
    text = scan_sql(spark, T, "d >= date_sub(current_date(), 3)")
    assert files_read(spark.sql(f"select a from {text}")) <= 2
    with settings(spark, {"spark.sql.session.timeZone": "Pacific/Kiritimati"}):
        assert files_read(spark.sql(f"select a from {text}")) == 8


def test_names_that_are_not_the_clock(spark: SparkSession, lately: str) -> None:
    tree = _tree("d > current_date")
    assert with_clock_bounds(spark, tree, ["Current_Date"]) == tree
    assert with_clock_bounds(spark, tree, ["d"]) != tree
    other = spark.newSession()
    other.udf.register("now", lambda: None, "timestamp")
    assert with_clock_bounds(other, _tree("ts > now()"), ["ts"]) == _tree("ts > now()")


def test_an_explanation_shows_the_moment(spark: SparkSession, lately: str) -> None:
    assert "DATE '" in str(explain(spark, T, "d >= current_date() - 3"))
