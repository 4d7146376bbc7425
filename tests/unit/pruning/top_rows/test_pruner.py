from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import prune_statement, query
from dbt_zorder.pruning.plain_sql import statement
from dbt_zorder.pruning.plain_sql.explanation import explain_statement
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.pruning.plans import pins
from dbt_zorder.pruning.top_rows import pruner
from dbt_zorder.stats import cache, collect
from dbt_zorder.stats.schema import with_bounds
from dbt_zorder.stats.store import write_stats
from tests.support import settings, unique
from tests.unit.pruning.helpers import files_read, location

T = "pruning_unit.t"


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """The statistics are in memory, unless a test reads them by a job."""


# a statement whose rows have one order, the files that it reads at most, of 8, and the rule
LIMITED = [
    (f"select * from {T} order by ts desc limit 10", 1, "top 10 by ts"),
    (f"select b from {T} order by b limit 10", 1, "top 10 by b"),
    (f"select s from {T} order by ts desc limit 10 offset 140", 2, "top 150 by ts"),
    (f"select b, n from {T} order by n, b limit 5", 1, "top 5 by n"),
    (f"select b, n from {T} order by n, b limit 110", 2, "top 110 by n"),
    (f"select b, n from {T} order by n nulls last, b limit 3", 2, "top 3 by n"),
    (f"select b, n from {T} order by n desc, b limit 3", 1, "top 3 by n"),
    (f"select b, n from {T} order by n desc nulls first, b limit 3", 1, "top 3 by n"),
    (f"select b, n from {T} where n is not null order by n limit 3", 2, "top 3 by n"),
    (f"select b, d from {T} order by d desc, b limit 3", 2, "top 3 by d"),
    (f"select b, s from {T} order by s desc limit 3", 1, "top 3 by s"),
    (f"select b, dec from {T} order by dec desc, b limit 3", 2, "top 3 by dec"),
    ("select A, TS from PRUNING_UNIT.T order by TS limit 3", 1, "top 3 by ts"),
    (f"select k from (select a as k, ts as w from {T}) order by w desc limit 3", 1, "top 3 by ts"),
    (f"select max(a), count(*) from (select * from {T} order by a desc limit 3)", 1, "top 3 by a"),
    (f"with c as (select * from {T} order by b limit 3) select c.b, r.id from c join range(9) r on c.b = r.id", 1, "b"),
    (f"with c as (select * from {T} order by b limit 3) select x.b, y.a from c x join c y on x.b = y.b", 2, "top 3"),
    (f"select id, (select max(a) from (select a from {T} order by b desc limit 2)) m from range(2)", 1, "top 2 by b"),
    (f"select id from range(2) where exists (select 1 from {T})", 1, "limit of 1"),
    (f"select count(*) from (select * from {T} limit 10)", 1, "limit of 10"),
    (f"select count(*) from (select * from {T} limit 150)", 2, "limit of 150"),
    (f"select count(*) from (select * from {T} limit 100 offset 50)", 2, "limit of 150"),
]


@pytest.mark.parametrize(("sql", "files", "rule"), LIMITED, ids=[sql for sql, _, _ in LIMITED])
def test_a_limit_excludes_files(spark: SparkSession, table: str, sql: str, files: int, rule: str) -> None:
    reads = prepare(spark, sql).reads
    assert reads
    assert all(rule in " ".join(read.rules) for read in reads)
    assert files_read(query(spark, sql)) <= files
    assert query(spark, sql).collect() == spark.sql(sql).collect()


WHOLE = [
    (f"select b from {T} order by x limit 3", "top 3 by x: no bounds of x order its rows"),
    (f"select b from {T} order by b limit 5000", "top 5,000 by b: every file may hold one"),
    (f"select b from {T} limit 5000", "limit of 5,000: every file may hold one"),
    (f"select b from {T} order by b + 1 limit 3", "all of its rows are used"),
    (f"select b from {T} where a % 2 = 0 order by b limit 3", "too small"),
    (f"select distinct d from {T} order by d limit 3", "all of its rows are used"),
]


@pytest.mark.parametrize(("sql", "reason"), WHOLE)
def test_a_limit_that_may_use_every_file_says_why(spark: SparkSession, table: str, sql: str, reason: str) -> None:
    pruned = prepare(spark, sql)
    assert pruned.reads == ()
    assert reason in pruned.reason


def test_statistics_that_a_job_reads(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "FILE_BYTES", 0)
    for sql in (f"select * from {T} order by ts desc limit 10", f"select count(*) from (select * from {T} limit 10)"):
        assert prepare(spark, sql).reads[0].files_read == 1
        assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_a_text_that_runs_later_is_not_limited(spark: SparkSession, table: str) -> None:
    assert prune_statement(spark, f"select * from {T} order by ts limit 3").reads == ()


def test_no_limit_counts_on_files_that_the_session_may_ignore(spark: SparkSession, table: str) -> None:
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        assert "ignores files" in prepare(spark, f"select * from {T} order by ts limit 3").reason


def test_the_explanation_names_the_limit(spark: SparkSession, table: str) -> None:
    assert "top 10 by ts" in str(explain_statement(spark, f"select * from {T} order by ts desc limit 10"))


# a filtered statement, the files that it reads, and whether the best files hold enough rows
FILTERED = [
    (f"select b from {T} where a % 2 = 0 order by ts desc limit 10", 1),
    (f"select b from {T} where upper(s) like '%7' order by b limit 20", 3),
    (f"select b, n from {T} where a % 2 = 0 order by n, b limit 4", 1),
    (f"select b, n from {T} where a % 2 = 0 order by n nulls last, b limit 4", 2),
    (f"select b, d from {T} where a % 3 = 0 order by d desc, b desc limit 4", 2),
    (f"select b from {T} where a % 2 = 0 and b < 700 order by b desc limit 10 offset 5", 2),
    (f"select b from {T} where a % (select max(id) from range(3)) = 0 order by ts desc limit 10", 1),
    (f"select w from (select b as w, s from {T} where s like '%3') order by w desc limit 5", 1),
]


@pytest.fixture
def any_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner, "BYTES_AT_LEAST", 0)
    monkeypatch.setattr(pruner, "FILES_AT_LEAST", 2)
    monkeypatch.setattr(pruner, "_SHARE_AT_MOST", 0.6)


@pytest.mark.parametrize(("sql", "files"), FILTERED)
def test_the_best_files_of_a_filtered_scan_are_read_first(
    spark: SparkSession, table: str, any_table_is_large: None, sql: str, files: int
) -> None:
    (read,) = prepare(spark, sql).reads
    assert read.rules[-1].startswith("top ")
    assert files_read(query(spark, sql)) <= files
    assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_only_the_best_files_are_opened_to_find_the_last_row(
    spark: SparkSession, table: str, any_table_is_large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    last_key = pruner.TopPruner._last_key

    def counted(self: Any, limit: Any, plan: Any, tests: Any, paths: Any) -> Any:
        found = last_key(self, limit, plan, tests, paths)
        read.append(len(paths))
        return found

    monkeypatch.setattr(pruner.TopPruner, "_last_key", counted)
    assert prepare(spark, f"select b from {T} where a % 20 = 0 order by ts desc limit 10").reads
    assert read == [1, 4]
    read.clear()
    reason = prepare(spark, f"select b from {T} where a % 500 = 0 order by ts desc limit 10").reason
    assert (read, "too few rows" in reason) == ([1, 4], True)


@pytest.fixture
def made(spark: SparkSession, table: str) -> Iterator[Callable[..., str]]:
    """Return a function that makes a table of a query, with statistics of all its columns."""
    spark.sql("CREATE DATABASE top_unit")

    def make(rows: str, change: Any = None, partition: str = "") -> str:
        name = f"top_unit.{unique('t')}"
        spark.sql(f"CREATE TABLE {name} USING parquet {partition} AS {rows}")
        columns = [column for column in spark.table(name).columns if not partition or column not in partition]
        stats = collect(spark, name, columns)
        write_stats(with_bounds(stats, change) if change else stats, location(spark, name))
        return name

    yield make
    spark.sql("DROP DATABASE top_unit CASCADE")


FOUR = "SELECT /*+ repartition_by_range(4, id) */ id, cast(id % 2 AS int) AS g FROM range(40)"


@pytest.mark.parametrize(
    "sql", ["select id from {t} order by id desc limit 5", "select id from {t} where g = 1 order by id desc limit 5"]
)
@pytest.mark.parametrize("how", ["appended", "overwritten", "dropped"])
def test_a_table_that_changes_between_planning_and_running(
    spark: SparkSession,
    made: Callable[..., str],
    any_table_is_large: None,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    sql: str,
) -> None:
    name = made(FOUR)
    sql = sql.format(t=name)
    spark.catalog.clearCache()  # with a cached query, statements are planned by their text
    assert prepare(spark, sql).reads
    calls: list[int] = []

    def read_versions(spark: SparkSession, files: Any) -> Any:
        calls.append(1)
        if how == "dropped":
            best = max(spark.sql(f"select id, _metadata.file_path from {name}").collect())[1]
            Path(best.removeprefix("file:")).unlink()
            spark.sql(f"REFRESH TABLE {name}")
        else:
            spark.sql(f"INSERT {'INTO' if how == 'appended' else 'OVERWRITE'} {name} VALUES (7L, 1), (39L, 1)")
        return pins.read_versions(spark, files)

    monkeypatch.setattr(statement, "read_versions", read_versions)
    pruned = prepare(spark, sql)
    assert calls == [1]
    assert pruned.reads == ()
    assert pruned.run(spark).collect() == spark.sql(sql).collect()


def test_rows_of_files_without_statistics_come_first_all_the_same(
    spark: SparkSession, made: Callable[..., str]
) -> None:
    name = made(FOUR)
    spark.sql(f"INSERT INTO {name} VALUES (100L, 1), (5L, 0), (null, 0)")
    for order in ("id desc", "id", "id nulls last", "id desc nulls first"):
        sql = f"select id from {name} order by {order} limit 3"
        assert prepare(spark, sql).reads
        assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_a_file_in_statistics_that_is_gone_guarantees_no_row(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made(FOUR)
    best = max(spark.sql(f"select id, _metadata.file_path from {name}").collect())[1]
    Path(best.removeprefix("file:")).unlink()
    spark.sql(f"REFRESH TABLE {name}")
    for sql in (
        f"select id from {name} order by id desc limit 5",
        f"select count(*) from (select * from {name} limit 25)",
    ):
        assert query(spark, sql).collect() == spark.sql(sql).collect()
        assert prepare(spark, sql).places[0].files_read >= 2


def test_nulls_ties_and_files_of_nulls(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made(
        "SELECT /*+ repartition_by_range(6, f) */ f, if(f < 2, NULL, f div 2 * 10 + id % 2) AS c "
        "FROM (SELECT id, id div 5 AS f FROM range(30))"
    )
    for order in ("c", "c desc", "c nulls last", "c desc nulls first"):
        for rows in (1, 4, 5, 6, 10, 11, 20, 29, 30, 31):
            sql = f"select c from {name} order by {order} limit {rows}"
            assert query(spark, sql).collect() == spark.sql(sql).collect(), sql
    assert prepare(spark, f"select c from {name} order by c desc limit 1").reads
    assert prepare(spark, f"select c from {name} order by c limit 1").reads


def test_bounds_of_texts_that_are_cut(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made(
        "SELECT /*+ repartition_by_range(5, s) */ concat(chr(97 + id div 10), 'x', id) AS s FROM range(50)",
        lambda kind, low, high: (f"substring({low}, 1, 1)", f"concat(substring({high}, 1, 1), '~')"),
    )
    for order in ("s", "s desc"):
        for rows in (1, 9, 10, 11, 30):
            sql = f"select s from {name} order by {order} limit {rows}"
            assert query(spark, sql).collect() == spark.sql(sql).collect(), sql
        assert prepare(spark, f"select s from {name} order by {order} limit 3").reads


def test_an_empty_table(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made("SELECT id FROM range(0)")
    assert query(spark, f"select id from {name} order by id limit 3").collect() == []
    assert query(spark, f"select id from {name} limit 3").collect() == []


def test_a_table_whose_files_are_listed_when_it_is_read(spark: SparkSession, made: Callable[..., str]) -> None:
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):
        name = made("SELECT id, id % 4 AS p FROM range(40)", partition="PARTITIONED BY (p)")
        pruned = prepare(spark, f"select id from {name} order by id limit 3")
        assert "top 3 by id: the table's files are listed when it is read" in pruned.reason


def test_statements_that_keep_the_first_rows(spark: SparkSession, made: Callable[..., str]) -> None:
    name, copy = made(FOUR), f"top_unit.{unique('copy')}"
    asked = f"select id from {name} order by id desc limit 5"
    for sql in (f"create table {copy} using parquet as {asked}", f"insert into {copy} {asked}"):
        pruned = prepare(spark, sql)
        assert pruned.reads[0].rules == ("top 5 by id",)
        pruned.run(spark)
    assert sorted(row[0] for row in spark.table(copy).collect()) == sorted([35, 36, 37, 38, 39] * 2)
