"""Predicates that mean something else on another day, or in another time zone."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, scan, scan_sql
from tests.support import settings
from tests.unit.pruning.helpers import files_read

ZONE = "spark.sql.session.timeZone"


@pytest.mark.parametrize(
    "predicate",
    [
        "d >= DATE 'today'",
        'd >= DATE "today"',
        r"d >= DATE 'to\u0064ay'",
        "ts >= TIMESTAMP 'now'",
        "d >= 'Tomorrow'",
        "'yesterday' <= d",
        "d >= ' today UTC'",
        "d <=> 'today'",
        "d >= to_date('yesterday')",
        "d >= CAST('tomorrow' AS DATE)",
        "d >= 'today'::date",
        "d >= date_add('today', 1)",
        "d IN (DATE '2030-01-01', 'today')",
        "d BETWEEN 'today' AND DATE '9999-01-01'",
        "ts >= '09:00:00'",
        "ts >= 'T09:00'",
        "ts = to_timestamp('9:30')",
        "d >= date(concat('to', 'day'))",
        "d >= cast('to' || 'day' AS DATE)",
        "d >= cast(cast(X'746f646179' AS STRING) AS DATE)",
        "(a, d) IN ((-1, DATE 'today'))",
        "DATE 'today' < DATE '2024-01-01'",
        "s >= 'tomorrow' + INTERVAL 1 DAY",
        "CAST(s AS DATE) > DATE '2024-01-01'",
    ],
)
def test_what_another_day_changes_keeps_every_file(spark: SparkSession, table: str, predicate: str) -> None:
    explained = explain(spark, table, predicate)
    assert explained.files_read == explained.files_total == 8
    if "'now'" in predicate:  # Spark reads it when it parses it, twice
        assert "does not confirm" in explained.reason
    else:
        reasons = [explained.reason, *(part.reason for part in explained.parts)]
        assert any("moment at which the query runs" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        ("d <= '2024-01-05'", 1),
        ("d < '2024'", 0),
        ("ts < ' 2023-11-15 09:00:00'", 1),
        ("ts < '2023-11-15T09:00:00Z'", 1),
        ("trunc(d, 'month') = '2024-01-01' and year(d) = 2024", 3),
        ("(d, s) IN ((DATE '2024-01-01', 'k0001'), (DATE '2024-04-01', 'at 9:00'))", 2),
        ("d <= '2024-01-05' and s <> 'today'", 1),
        ("s = 'today' or s = '09:00'", 0),
    ],
)
def test_what_no_day_changes_leaves_files_out(spark: SparkSession, table: str, predicate: str, files: int) -> None:
    assert files_read(scan(spark, table, predicate)) <= files


@pytest.mark.parametrize(
    "predicate",
    [
        "ts >= '2023-12-01 00:00:00' and ts < '2023-12-01 02:00:00'",
        "ts between timestamp '2023-12-01 00:00:00' and timestamp '2023-12-01 02:00:00'",
        "ts = date '2023-12-05'",
        "cast(d as timestamp) = timestamp_seconds(1706745600)",
        "d = timestamp_seconds(1706745600)",
        "date(ts) = date '2023-12-05' and hour(ts) >= 22",
    ],
)
def test_files_chosen_in_one_time_zone_are_not_left_out_in_another(
    spark: SparkSession, table: str, predicate: str
) -> None:
    """A model's files are chosen while it is compiled; its hooks, which may set another zone, run after that."""
    with settings(spark, {ZONE: "UTC"}):
        text = scan_sql(spark, table, predicate)
        assert files_read(spark.sql(f"SELECT * FROM {text}")) <= 3
        assert files_read(scan(spark, table, predicate)) <= 3
        spark.sql(f"CREATE OR REPLACE VIEW pruning_unit.chosen AS SELECT * FROM {text}")
        assert files_read(spark.table("pruning_unit.chosen")) <= 3
        in_utc = sorted(spark.table(table).where(predicate).collect())
    with settings(spark, {ZONE: "Pacific/Kiritimati"}):
        wanted = sorted(spark.table(table).where(predicate).collect())
        assert sorted(spark.sql(f"SELECT * FROM {text}").collect()) == wanted
        # what is made of the text now is read in this zone for good, also by sessions in the first one
        spark.sql(f"CREATE OR REPLACE VIEW pruning_unit.late AS SELECT * FROM {text}")
        assert sorted(spark.table("pruning_unit.chosen").collect()) == in_utc
    with settings(spark, {ZONE: "UTC"}):
        assert sorted(spark.table("pruning_unit.late").collect()) == wanted
    with settings(spark, {ZONE: "Pacific/Kiritimati", "spark.sql.legacy.useCurrentConfigsForView": "true"}):
        assert sorted(spark.table("pruning_unit.chosen").collect()) == wanted
    legacy = {"spark.sql.legacy.timeParserPolicy": "LEGACY"}
    with settings(spark, {ZONE: "UTC", **legacy}):
        assert sorted(spark.sql(f"SELECT * FROM {text}").collect()) == in_utc


@pytest.mark.parametrize("zone", ["Etc/UTC", "America/St_Johns", "PST", "+9:00", "GMT+5", "Z"])
def test_times_leave_files_out_in_every_time_zone(spark: SparkSession, table: str, zone: str) -> None:
    predicate = "ts >= '2023-12-01 00:00:00' and ts < '2023-12-01 02:00:00'"
    with settings(spark, {ZONE: zone}):
        assert files_read(spark.sql(f"SELECT * FROM {scan_sql(spark, table, predicate)}")) <= 2


def test_times_leave_files_out_where_no_time_zone_is_set(spark: SparkSession, table: str) -> None:
    with settings(spark, {ZONE: "UTC"}):
        spark.conf.unset(ZONE)
        assert files_read(scan(spark, table, "ts < '2023-11-16'")) <= 2


@pytest.mark.parametrize("predicate", ["d = '2024-02-01'", "year(d) = 2025", "a = 5", "startswith(s, 'k05')"])
def test_days_and_numbers_are_the_same_in_every_time_zone(spark: SparkSession, table: str, predicate: str) -> None:
    with settings(spark, {ZONE: "UTC"}):
        text = scan_sql(spark, table, predicate)
    with settings(spark, {ZONE: "Asia/Tokyo"}):
        assert files_read(spark.sql(f"SELECT * FROM {text}")) <= 2
