"""Functions, cases and other types of a column, on a table of eight files."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, prune_statement, query, scan
from tests.support import settings
from tests.unit.pruning.helpers import files_read

T = "pruning_unit.t"


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """One way to hold statistics suffices here."""


# predicate, and the files that it must read at most; the last column, whether a plain statement prunes it too
PRUNED = [
    ("date_trunc('month', ts) = '2023-12-01'", 7),
    ("date_trunc('month', ts + interval 1 month) = '2024-01-01' and a > 900", 1),
    ("date_trunc('hour', ts) = timestamp '2023-11-15 05:00:00'", 2),
    ("date_format(ts, 'yyyy-MM-dd') = '2023-11-15'", 1),
    ("date_format(d, 'yyyyMM') = '202404'", 2),
    ("datediff(date '2024-04-10', d) <= 7", 1),
    ("datediff(d, date '2024-01-01') < 7", 1),
    ("ts + interval 1 day > timestamp '2023-12-26 00:00:00'", 1),
    ("ts - interval 1 month < '2023-10-15'", 1),
    ("unix_timestamp(ts) < 1700007200", 1),
    ("month(d) = 4", 2),
    ("substr(cast(ts as string), 1, 10) = '2023-11-15'", 1),
    ("a + 1 = 43", 1),
    ("10 - a > 5", 1),
    ("-2 * b < -1990", 1),
    ("floor(x) = 42", 1),
    ("coalesce(n, -1) = 420", 1),
    ("coalesce(n, -1) = -1", 1),
    ("nullif(a, 5) = 6", 1),
    ("if(a = 5, 1, 0) = 1", 1),
    ("case when a < 5 then 'x' when a > 995 then 'y' end = 'y'", 1),
    ("substr(s, 1, 4) = 'k004'", 1),
    ("s rlike '^k004'", 1),
    ("s ilike 'K004%'", 1),
    ("lower(s) = 'k0042'", 1),
    ("upper(s) like 'J%'", 0),
    ("lcase(s) in ('bob', 'k0042')", 1),
    ("'x' || s = 'xk0042'", 1),
    ("cast(a as string) = '42'", 1),
    ("cast(b as string) in ('42', '043', 'x')", 1),
    ("cast(x as int) = 42", 1),
    ("ts = timestamp_ntz '2023-11-15 05:13:20'", 1),
    ("cast(ts as timestamp_ntz) <= timestamp '2023-11-15 05:13:20'", 1),
]  # fmt: skip


def read_of(spark: SparkSession, table: str, predicate: str) -> int:
    """Return the number of files that a predicate reads."""
    files = explain(spark, table, predicate).files_read
    assert files is not None
    return files


@pytest.mark.parametrize("ansi", ["false", "true"])
def test_functions_read_few_files_and_every_row(spark: SparkSession, table: str, ansi: str) -> None:
    share = PRUNED[ansi == "true" :: 2]
    with settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "America/New_York"}):
        for predicate, files in share:
            pruned = scan(spark, table, predicate)
            assert files_read(pruned) <= files, predicate
            assert sorted(pruned.collect()) == sorted(spark.table(table).where(predicate).collect()), predicate


def test_a_plain_statement_reads_few_files_too(spark: SparkSession, table: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        for predicate, files in PRUNED[::2]:
            sql = f"SELECT a FROM {T} WHERE {predicate}"
            pruned = query(spark, sql)
            assert files_read(pruned) <= files, (predicate, prune_statement(spark, sql))
            assert sorted(pruned.collect()) == sorted(spark.sql(sql).collect()), predicate


@pytest.mark.parametrize(
    "predicate",
    [
        "reverse(s) = '2400k'",
        "concat(s, 'x') = 'k0042x'",
        "date_format(ts, 'MM-yyyy') = '11-2023'",
        "s rlike '^k004|^k005'",
        "a % 7 = 0",
        "b + 9223372036854775800 < 0",
        "cast(x as string) = '63.0'",
    ],
)
def test_what_keeps_no_order_reads_all_files(spark: SparkSession, table: str, predicate: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        rows = spark.table(table).where(predicate)
        assert sorted(scan(spark, table, predicate).collect()) == sorted(rows.collect())
        assert read_of(spark, table, predicate) >= 7


def test_an_overflow_is_still_an_error_under_ansi(spark: SparkSession, table: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "true"}), pytest.raises(Exception, match="OVERFLOW"):
        scan(spark, table, "a + 2147483647 < 5").collect()


def test_a_bound_that_fails_keeps_the_other_tests(spark: SparkSession, table: str) -> None:
    """An interval beyond the calendar fails for every file, which must not keep ``a = 5`` from pruning."""
    predicate = "a = 5 or (ts + interval 100000000 days < '2024-01-01' and a = 6)"
    assert read_of(spark, table, predicate) <= 2
    assert read_of(spark, table, "a = 5 and ts + interval 100000000 days < '2024-01-01'") <= 1


@pytest.mark.parametrize(
    ("predicate", "files", "reason"),
    [
        ("a = 5 and rand() < 2", 1, ""),
        ("a = 5 and uuid() > ''", 1, ""),
        ("a = 5 or rand() < 2", 8, "rand"),
        ("not (a <> 5 or rand() > 2)", 1, ""),
        ("a = 5 and rand(42) < 2", 8, "seed"),
        ("a = 5 and monotonically_increasing_id() >= 0", 8, "where a row is read"),
    ],
)
def test_chance_keeps_nothing_beside_it_unless_it_has_a_seed(
    spark: SparkSession, table: str, predicate: str, files: int, reason: str
) -> None:
    explained = explain(spark, table, predicate)
    assert (explained.files_read or 0) <= files
    assert reason in " ".join([explained.reason, *(part.reason for part in explained.parts)])
    rows = scan(spark, table, predicate)
    assert files_read(rows) <= files
    assert rows.where("a = 5").count() == 1
