from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from dbt_zorder.pruning import prune_statement, query
from dbt_zorder.pruning.plain_sql import metadata_answers, statement
from dbt_zorder.pruning.plain_sql.explanation import explain_statement
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats
from tests.soundness.ranking_model import aggregate_faults
from tests.support import settings, unique
from tests.unit.pruning.helpers import files_read, location

T = "pruning_unit.t"


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """The statistics are in memory."""


def columns(df: DataFrame) -> list[tuple[str, DataType, bool]]:
    return [(field.name, field.dataType, field.nullable) for field in df.schema]


def test_results_of_bounds() -> None:
    assert aggregate_faults(metadata_answers, 2_000) == []


ANSWERED = [
    f"select count(*) from {T}",
    f"select count(1) as n, count(n), count(s), count(x) from {T}",
    f"select min(a), max(a), min(b) as low, max(n) + 1, coalesce(max(n), 0) from {T}",
    f"select min(ts), max(ts) m, min(d), max(d), min(dec), max(dec), min(flag), max(flag) from {T}",
    "SELECT MAX(TS) AS `last one`, COUNT ( * ) FROM `pruning_unit`.`T` AS x",
    f"select max(x.b), 'a', x.k from (select max(b) as b, 7 as k from {T}) x group by x.k",
    f"with c as (select count(*) as n, max(d) as d from {T}) select n, d, year(d) from c where n > 5",
    f"select * from range(2) cross join (select max(b) as m from {T}) t",
    f"select (select max(ts) from {T}) as last, (select count(*) from {T} t) as n",
    f"select id from range(2000) where id >= (select max(b) from {T})",
    f"select count(*) from {T} union all select max(b) from {T} order by 1",
    f"select distinct max(a) from {T}",
    f"select count(*) as n from {T} limit 3",
    f"select count(*), if(max(ts) < now(), 'old', 'new') from {T} -- {T}",
    f"select * from (select count(*) from {T}) where `count(1)` > 3",
]


@pytest.mark.parametrize("sql", ANSWERED)
def test_aggregates_of_a_whole_table_open_no_file(spark: SparkSession, table: str, sql: str) -> None:
    pruned = prepare(spark, sql)
    assert pruned.places
    assert {place.rules for place in pruned.places} == {("metadata",)}
    assert {(place.files, place.files_read, place.bytes_read, place.reason) for place in pruned.places} == {
        (8, 0, 0, "")
    }
    found, whole = query(spark, sql), spark.sql(sql)
    assert columns(found) == columns(whole)
    assert files_read(query(spark, sql)) == 0
    assert found.collect() == whole.collect()


NOT_ANSWERED = [
    f"select count(*) from {T} where x > 5",
    f"select count(*) from {T} where rand(1) > 2",
    f"select d, count(*) from {T} group by d",
    f"select count(distinct a) from {T}",
    f"select count(*) filter (where x > 5) from {T}",
    f"select count(a, b), max(a) from {T}",
    f"select sum(a), count(*) from {T}",
    f"select max(x), min(x) from {T}",
    f"select max(s) from {T}",
    f"select max(a + 1) from {T}",
    f"select max(st.f), count(st) from {T}",
    f"select max(a) over () as m from {T} order by m limit 1",
    f"select count(*) from {T}, range(3)",
    f"select count(*) from {T} having count(*) > 5",
    f"select count(*) from {T} order by max(b)",
    f"select max(a), any_value(b) from {T}",
    f"select count(*) from {T} lateral view explode(array(1, 2)) e as i",
    f"select count(null) from {T}",
    f"select (max(a) + 1) from {T}",
]


@pytest.mark.parametrize("sql", NOT_ANSWERED)
def test_other_aggregates_read_the_table(spark: SparkSession, table: str, sql: str) -> None:
    pruned = prepare(spark, sql)
    assert all("metadata" not in place.rules for place in pruned.places)
    if "any_value" not in sql and "rand" not in sql:
        assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_a_part_of_a_statement(spark: SparkSession, table: str) -> None:
    sql = f"select t.b, (select max(ts) from {T}) as last from {T} t where t.b = 5"
    one, other = prepare(spark, sql).places
    assert (one.rules, one.files_read, other.rules, other.files_read) == (("metadata",), 0, ("filter",), 1)
    assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_a_watermark_is_answered_and_chooses_files(spark: SparkSession, table: str) -> None:
    sql = f"select b from {T} where ts > (select max(ts) - interval 2 hours from {T}) order by b"
    assert [(place.rules, place.files_read) for place in prepare(spark, sql).places] == [
        (("metadata",), 0),
        (("filter",), 1),
    ]
    assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_the_question_of_freshness(spark: SparkSession, table: str) -> None:
    sql = "select\n  max(ts) as max_loaded_at,\n  current_timestamp() as snapshotted_at\nfrom `pruning_unit`.`t`"
    assert prepare(spark, sql).places[0].rules == ("metadata",)
    assert query(spark, sql).collect()[0][0] == spark.sql(sql).collect()[0][0]
    assert files_read(query(spark, sql)) == 0


def test_a_text_that_runs_later_is_not_answered(spark: SparkSession, table: str) -> None:
    assert prune_statement(spark, f"select count(*) from {T}").sql == f"select count(*) from {T}"


def test_the_explanation_names_metadata(spark: SparkSession, table: str) -> None:
    assert "metadata" in str(explain_statement(spark, f"select max(ts) from {T}"))


@pytest.mark.parametrize("key", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
def test_files_that_the_session_may_ignore(spark: SparkSession, table: str, key: str) -> None:
    with settings(spark, {key: "true"}):
        assert prepare(spark, f"select count(*) from {T}").sql == f"select count(*) from {T}"


def test_a_session_that_reads_times_in_another_calendar(spark: SparkSession, table: str) -> None:
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        assert prepare(spark, f"select max(d) from {T}").sql == f"select max(d) from {T}"
        assert prepare(spark, f"select max(a) from {T}").places[0].files_read == 0


def test_a_function_that_the_session_hides(spark: SparkSession, table: str) -> None:
    other = spark.newSession()
    other.udf.register("max", lambda value: 1, "bigint")
    places = prepare(other, f"select max(b) from {T} order by 1 limit 1").places
    assert places
    assert all("metadata" not in place.rules for place in places)


def test_a_cached_table_is_read_from_the_cache(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made("SELECT id FROM range(10)")
    spark.sql(f"CACHE TABLE {name}")
    try:
        assert prepare(spark, f"select count(*) from {name}").sql == f"select count(*) from {name}"
    finally:
        spark.sql(f"UNCACHE TABLE {name}")


@pytest.fixture
def made(spark: SparkSession, table: str) -> Iterator[Callable[..., str]]:
    """Return a function that makes a table of a query, with statistics of all its columns."""
    spark.sql("CREATE DATABASE metadata_unit")

    def make(rows: str) -> str:
        name = f"metadata_unit.{unique('t')}"
        spark.sql(f"CREATE TABLE {name} USING parquet AS {rows}")
        write_stats(collect(spark, name, spark.table(name).columns), location(spark, name))
        return name

    yield make
    spark.sql("DROP DATABASE metadata_unit CASCADE")


def test_statistics_of_other_files_answer_nothing(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made("SELECT /*+ repartition(3) */ id FROM range(30)")
    sql = f"select count(*), max(id) from {name}"
    assert prepare(spark, sql).places[0].files_read == 0
    spark.sql(f"INSERT INTO {name} VALUES (99L)")
    assert prepare(spark, sql).sql == sql
    assert query(spark, sql).collect() == [(31, 99)]
    spark.sql(f"INSERT OVERWRITE {name} VALUES (7L)")
    assert query(spark, sql).collect() == [(1, 7)]


def test_a_file_that_is_gone(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made("SELECT /*+ repartition_by_range(3, id) */ id FROM range(30)")
    Path(max(spark.sql(f"select id, _metadata.file_path from {name}").collect())[1].removeprefix("file:")).unlink()
    spark.sql(f"REFRESH TABLE {name}")
    sql = f"select count(*), max(id) from {name}"
    assert query(spark, sql).collect() == spark.sql(sql).collect()


def test_nulls_and_an_empty_table(spark: SparkSession, made: Callable[..., str]) -> None:
    nulls = made("SELECT cast(null AS int) AS c, cast(null AS timestamp) AS ts FROM range(4)")
    sql = f"select count(*), count(c), max(c), min(ts) from {nulls}"
    assert prepare(spark, sql).places[0].files_read == 0
    assert query(spark, sql).collect() == [(4, 0, None, None)]
    assert columns(query(spark, sql)) == columns(spark.sql(sql))
    empty = made("SELECT id FROM range(0)")
    assert query(spark, f"select count(*), max(id) from {empty}").collect() == [(0, None)]


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_days_and_times(spark: SparkSession, made: Callable[..., str], zone: str) -> None:
    name = made(
        "SELECT timestamp_micros(1289100600000001 + id * 3600000000) AS ts, "
        "date '1899-12-30' + cast(id AS int) AS old, date '1999-12-30' + cast(id AS int) AS d FROM range(60)"
    )
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        sql = f"select min(ts), max(ts), min(d), max(d) from {name}"
        assert prepare(spark, sql).places[0].files_read == 0
        assert query(spark, sql).collect() == spark.sql(sql).collect()
        assert prepare(spark, f"select min(old) from {name}").sql == f"select min(old) from {name}"
        assert prepare(spark, f"select max(old) from {name}").places[0].files_read == 0


def test_times_without_their_microseconds_in_the_statistics(spark: SparkSession, made: Callable[..., str]) -> None:
    name = made("SELECT timestamp_micros(1289100600000001 + id) AS ts FROM range(60)")
    with settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}):
        write_stats(collect(spark, name, ["ts"]), location(spark, name))
    sql = f"select max(ts), count(*) from {name}"
    assert prepare(spark, sql).sql == sql
    assert prepare(spark, f"select count(ts) from {name}").places[0].files_read == 0


def test_a_table_that_changes_between_its_two_reads(
    spark: SparkSession, made: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = made("SELECT /*+ repartition_by_range(4, id) */ id FROM range(40)")
    sql = f"select id, (select count(*) from {name}) as n from {name} where id > 37 order by 1"
    answer = metadata_answers.answer_aggregates

    def answer_aggregates(*args: Any) -> Any:
        found = answer(*args)
        if found is not None:
            spark.sql(f"INSERT INTO {name} VALUES (100L)")
        return found

    monkeypatch.setattr(statement, "answer_aggregates", answer_aggregates)
    assert query(spark, sql).collect() == [(38, 41), (39, 41), (100, 41)]


def test_statements_that_keep_rows(spark: SparkSession, made: Callable[..., str]) -> None:
    name, copy = made("SELECT id, date '2024-01-01' AS d FROM range(9)"), f"metadata_unit.{unique('copy')}"
    asked = f"select count(*) as n, max(d) as last from {name}"
    for sql in (f"create table {copy} using parquet as {asked}", f"insert into {copy} {asked}"):
        pruned = prepare(spark, sql)
        assert pruned.places[0].rules == ("metadata",)
        pruned.run(spark)
    assert [(row[0], str(row[1])) for row in spark.table(copy).collect()] == [(9, "2024-01-01")] * 2
