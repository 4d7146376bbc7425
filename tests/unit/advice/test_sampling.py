"""Predictions beside what the pruner itself reads of real files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.advice.sampling import Asked, sample_reads
from dbt_zorder.advice.simulation import Candidate, predict
from dbt_zorder.advice.workload import Reader
from dbt_zorder.pruning import explain
from dbt_zorder.tables.save import save_table
from tests.support import unique

COLUMNS = {
    "a": "cast(if(id % 50 = 0, null, pmod(hash(id), 700)) as int)",
    "d": "date_add(date'2024-01-01', pmod(hash(id, 1), 366))",
    "ts": "timestamp'2024-01-01' + make_interval(0, 0, 0, pmod(hash(id, 1), 366), 0, 0, pmod(hash(id, 2), 86400))",
    "s": "concat('k', lpad(cast(pmod(hash(id), 700) as string), 3, '0'))",
    "n": "cast(pmod(hash(id, 3), 100000) / 100 as decimal(9, 2))",
    "x": "cast(pmod(hash(id), 700) as double)",
    "b": "pmod(hash(id), 700) < 20",
    "tags": "array(id)",
}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    name = f"default.{unique('advised')}"
    rows = spark.range(6000).selectExpr(*(f"{sql} AS {column}" for column, sql in COLUMNS.items()))
    save_table(rows, name, ["a", "d"], files=16, stats_columns=["ts", "s", "x", "b"])
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "where",
    [
        "a = 17", "a = 701", "a in (3, 4, 650)", "a < 100", "a <= 100", "a > 600", "a >= 600.5", "a between 10 and 20",
        "a is null", "a <=> 5", "a = '17'", "d = date'2024-03-01'", "d < '2024-02-01'", "year(ts) = 2024",
        "date_trunc('month', ts) = '2024-11-01'", "cast(ts as date) = date'2024-05-05'", "ts >= '2024-12-01'",
        "s like 'k01%'", "s = 'k017'", "s > 'k6'", "x < 10.5", "b", "not b", "a = 17 and d > '2024-06-01'",
        "a = 17 or a = 600", "a = 17 or s = 'k600'", "n = 5.25", "n < 3", "a = 17 and n < 3", "a = 1/0",
        "a = 17 or n = 1", "a = (select max(k) as m from (values (3), (17)) as v(k))",
        "s = 5", "d > current_date()", "tags = array(1)", "a in (1, null)",
    ],
)  # fmt: skip
def test_a_prediction_of_the_present_files_is_what_the_pruner_reads(
    spark: SparkSession, table: str, where: str
) -> None:
    schema, _, name = table.partition(".")
    scans = Reader((schema, name), dict.fromkeys(COLUMNS, "string")).read("q", f"select a from {table} where {where}")
    sampled, reads = sample_reads(spark, table, scans, Asked())
    read = explain(spark, table, "a = 17" if "select" in where else where).files_read
    if reads[0].test is None:
        assert where in UNBOUNDED
        return
    assert where not in UNBOUNDED
    assert sampled.is_whole
    assert sampled.present_stats.isdisjoint({"n", "tags"})
    found = predict(sampled, Candidate(), reads)
    assert (found.files, found.files_read) == (16, read)


UNBOUNDED = {"a = 1/0", "s = 5", "tags = array(1)", "a in (1, null)"}
"""Conditions whose constants have no place among the column's values."""


def test_a_join_looks_up_its_keys(spark: SparkSession, table: str) -> None:
    other = f"default.{unique('dim')}"
    spark.sql(f"CREATE TABLE {other} USING parquet AS SELECT id AS k, id = 17 AS is_wanted FROM range(700)")
    schema, _, name = table.partition(".")
    reader = Reader((schema, name), dict.fromkeys(COLUMNS, "string"), lambda _: {"k": "string", "is_wanted": "string"})
    scans = reader.read("q", f"select o.d from {table} o join {other} on a = k where is_wanted")
    sampled, reads = sample_reads(spark, table, scans, Asked())
    assert predict(sampled, Candidate(), reads).files_read == explain(spark, table, "a = 17").files_read
    assert reads[0].equalities == set(), "a lookup leaves out no partition by itself"
    spark.sql(f"DROP TABLE {other}")
    _, reads = sample_reads(spark, table, scans, Asked())
    assert reads[0].test is None


def test_a_sample_is_bounded(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    monkeypatch.setattr("dbt_zorder.advice.sampling.MOST_ROWS", 1_000)
    schema, _, name = table.partition(".")
    scans = Reader((schema, name), dict.fromkeys(COLUMNS, "string")).read("q", "a = 17")
    sampled, _ = sample_reads(spark, table, scans, Asked(files=8))
    assert 700 < len(sampled.ranks) < 1_300
    assert sampled.rows == 6_000
    assert (sampled.present_files, sampled.files) == (16, 8)
    assert sampled.row_bytes > 1
