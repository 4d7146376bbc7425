from __future__ import annotations

import re
from collections import Counter

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.pruning import query
from dbt_zorder.pruning.files.table_facts import read_facts
from dbt_zorder.pruning.plain_sql.catalyst import plan_statement
from dbt_zorder.pruning.plain_sql.fixed_values import fix_values
from dbt_zorder.pruning.plain_sql.statement import prepare
from tests.support import settings
from tests.unit.pruning.helpers import files_read

T = "pruning_unit.t"


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, table: str) -> str:
    """A table of what was loaded before, without statistics: all but the last eleven rows."""
    spark.sql("create table pruning_unit.loaded using parquet as select * from pruning_unit.t where b < 989")
    spark.sql("create table pruning_unit.nothing using parquet as select * from pruning_unit.t where b < 0")
    return "pruning_unit.loaded"


L = "pruning_unit.loaded"

# a query that must read one of a table's eight files, and compares a column with a subquery in WHERE
ONE_FILE = [
    f"select * from {T} where ts > (select max(ts) from {L})",
    f"select * from {T} where b > ( select max(b) from {L} ) -- (select 1)",
    f"select * from {T} where d > (select max(d) from {L})",
    f"select * from {T} where s > (select max(s) from {L})",
    f"select * from {T} where x > (select max(x) from {L})",
    f"select * from {T} where dec > (select max(dec) from {L})",
    f"select * from {T} where st.f > (select max(st.f) from {L})",
    f"select * from {T} where ts > (select coalesce(max(ts), timestamp '1900-01-01') from {L})",
    f"select * from {T} where ts > coalesce((select max(ts) from {L}), timestamp '1900-01-01')",
    f"select * from {T} where ts > coalesce((select max(ts) from pruning_unit.nothing), timestamp '2023-12-26')",
    f"select * from {T} where ts >= (select max(ts) from {L}) - interval 2 hours",
    f"select * from {T} where ts >= (select max(ts) - interval 2 hours from {L})",
    f"select * from {T} where d >= date_sub((select max(d) from {L}), 1)",
    f"select * from {T} where b < 5 + (select min(b) from {L})",
    f"select * from {T} where b between (select max(b) from {L}) and 2 * (select max(b) from {L})",
    f"select * from {T} where not b <= all_of and b > 0".replace("all_of", f"(select max(b) from {L})"),
    f"with w as (select max(ts) m from {L}) select * from {T} where ts > (select m from w)",
    f"with a as (select * from {L}), w as (select max(b) m from a) select b from {T} where b > (select m - 1 from w)",
    f"with n as (select * from {T} where b > (select max(b) from {L})) select count(*), max(a) from n",
    f"with w as (select max(b) m from {L}), n as (select * from {T} where b > (select m from w)) select * from n",
    f"select n.a from (select * from {T}) n where n.b > (select max(b) from {L}) and n.a > 0",
    f"select o.a from {T} o join (values (995), (3)) v(k) on o.a = v.k and o.b > (select max(b) from {L})",
    f"select * from {T} where b > (select max(b) from {L} where b < (select max(b) from {L}))",
    f"select * from {T} where b = (select b from {L} where b = 5)",
    f"select * from {T} where b = (select first(b) from {L} where b = 5)",
    f"select * from {T} where 5 = b and 5 < (select max(b) from {L})",
    f"select '\U0001f600 é', a from {T} where b > (select max(b) from {L})",
    f"select a from {T} where b = (values (5))",
    f"select a from {T} where b > (select max(b) from {L} l where exists (select 1 from {L} i where i.a = l.a))",
    f"select a, (select max(b) from {L} l where l.b = t.b) from {T} where b > (select max(b) from {L})",
    f"select a from {T} t where b > (select max(b) from {L}) and a >= (select max(a) from {L} l where l.b < t.b)",
]


@pytest.mark.parametrize("sql", ONE_FILE)
def test_a_subquery_chooses_files(spark: SparkSession, loaded: str, sql: str) -> None:
    pruned = prepare(spark, sql)
    assert [(read.files, read.files_read) for read in pruned.reads] == [(8, 1)], pruned
    rows, whole = spark.sql(pruned.sql), spark.sql(sql)
    assert rows.schema == whole.schema
    assert files_read(rows) < files_read(whole)
    assert Counter(map(str, rows.collect())) == Counter(map(str, whole.collect()))


# and queries whose subqueries stay, which Spark answers itself
LEFT = [
    f"select a from {T} where ts > (select max(ts) from {L} i where i.b = t.b - 1)",
    f"select a, (select max(b) from {L}) from {T}",
    f"select a from {T} where x > (select double('NaN'))",
    f"select a from {T} where x > (select -0.0D)",
    f"select a from {T} where d > (select 'epoch')",
    f"select a from {T} where cast(d as string) > (select '2024-03-01')",
    f"select a from {T} where ts > (select max(ts) from {L}) - (select interval 1 day)",
    f"select a from {T} where (select max(struct(b, a)) from {L}).b < b",
    f"select v.k from (values (3)) v(k) left join {T} o on o.a = v.k where o.b is null or o.b < (select 5)",
    f"select * from {L} where b > (select max(b) from {T})",
]


@pytest.mark.parametrize("sql", LEFT)
def test_a_subquery_that_stays(spark: SparkSession, loaded: str, sql: str) -> None:
    rows = query(spark, sql)
    assert Counter(map(str, rows.collect())) == Counter(map(str, spark.sql(sql).collect()))
    assert "scalar-subquery" in str(rows._jdf.queryExecution().analyzed())


def test_a_view_with_a_subquery_is_left_alone(spark: SparkSession, loaded: str) -> None:
    spark.sql(f"create temporary view late as select * from {T} where b > (select max(b) from {L})")
    try:
        sql = f"select o.a from {T} o join late on o.b = late.b where late.a = 995 and o.b > (select max(b) from {L})"
        assert query(spark, sql).collect() == spark.sql(sql).collect()
    finally:
        spark.catalog.dropTempView("late")


ERRORS = [
    f"select * from {T} where b > (select b from {L})",
    f"select * from {T} where b > (select b, a from {L})",
    f"select * from {T} where b > (select max(absent) from {L})",
    f"select * from {T} where b > (select raise_error('no'))",
]


@pytest.mark.parametrize("sql", ERRORS)
def test_an_error_is_sparks(spark: SparkSession, loaded: str, sql: str) -> None:
    messages = []
    for run in (spark.sql, lambda text: query(spark, text)):
        with pytest.raises((PySparkException, Py4JError)) as found:
            run(sql).collect()
        messages.append(re.findall(r"\[[A-Z_.]+\][^\n]*", str(found.value))[0])
    assert messages[0] == messages[1]


def test_no_row_is_null(spark: SparkSession, loaded: str) -> None:
    for sql in (
        f"select a from {T} where b > (select max(b) from pruning_unit.nothing)",
        f"select a from {T} where b > (select b from pruning_unit.nothing)",
        f"select a from {T} where b > (select b from pruning_unit.nothing) or b = 5",
        f"select a from {T} where b <=> (select b from pruning_unit.nothing) or b = 5",
    ):
        assert query(spark, sql).collect() == spark.sql(sql).collect()
    assert files_read(query(spark, f"select a from {T} where b > (select max(b) from pruning_unit.nothing)")) == 0


def _fixed(spark: SparkSession, sql: str, asked: list[str]) -> str:
    facts = read_facts(spark, T, spark.table(T))

    def run(session: SparkSession, text: str) -> DataFrame:
        asked.append(text)
        return session.sql(text)

    return fix_values(spark, plan_statement(spark, sql), [facts], run).sql


def test_the_same_subquery_runs_once(spark: SparkSession, loaded: str) -> None:
    asked: list[str] = []
    one = f"(select max(b) from {L} where a > 3)"
    fixed = _fixed(
        spark, f"select * from {T} where b > {one} or a = {one} union all select * from {T} where b > {one}", asked
    )
    assert asked == [one[1:-1]]
    value = "(CAST(988 AS BIGINT))"
    assert fixed == f"select * from {T} where b > {value} or a = {value} union all select * from {T} where b > {value}"


def test_only_what_chooses_files_is_run(spark: SparkSession, loaded: str) -> None:
    asked: list[str] = []
    for sql in (
        f"select a, (select max(b) from {L} where a > 3) from {T} where a = 5",
        f"select * from {L} where b > (select max(b) from {T} where a > 3) and exists (select 1 from {T})",
        f"select * from (select * from {T} limit 5) where b > (select max(b) from {L} where a > 3)",
    ):
        assert _fixed(spark, sql, asked) == sql
    assert not asked


def test_what_is_cached_answers(spark: SparkSession, loaded: str) -> None:
    sql = f"select a from {T} where b > (select max(b) from {L})"
    cached = spark.table(L).where("b < 500").cache()
    try:
        assert prepare(spark, sql).reads
        inside = f"select a from {T} where b > (select max(b) from (select * from {L} where b < 500))"
        assert query(spark, inside).collect() == spark.sql(inside).collect()
    finally:
        cached.unpersist()
    whole = spark.sql(sql).cache()
    try:
        assert not prepare(spark, sql).reads
    finally:
        whole.unpersist()


def test_settings_of_the_session(spark: SparkSession, loaded: str) -> None:
    sql = f"select a from {T} where ts > (select max(ts) from {L}) and s > (select 'k0')"
    expected = sorted(row.a for row in spark.sql(sql).collect())
    for zone in ("Europe/Berlin", "America/St_Johns", "Pacific/Apia"):
        for ansi in ("true", "false"):
            for kind in ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
                session = {
                    "spark.sql.session.timeZone": zone,
                    "spark.sql.ansi.enabled": ansi,
                    "spark.sql.timestampType": kind,
                }
                with settings(spark, session):
                    rows = query(spark, sql)
                    assert files_read(rows) == 1
                    assert sorted(row.a for row in rows.collect()) == expected
    with settings(spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        assert sorted(row.a for row in query(spark, sql).collect()) == expected


def test_a_time_that_a_clock_shows_twice(spark: SparkSession, loaded: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        for hour in range(-3, 4):
            sql = f"select a from {T} where ts < (select timestamp_seconds(1698537600 + {hour * 3600}))"
            assert query(spark, sql).collect() == spark.sql(sql).collect()
