from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import query
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats
from tests.support import settings
from tests.unit.pruning.helpers import files_read, location

T = "pruning_unit.recent"


@pytest.fixture(scope="module")
def recent(spark: SparkSession, table: str) -> str:
    """A table of eight files, with an hour of the last 41 days in each row."""
    spark.sql(
        f"""create table {T} using parquet as select /*+ repartition_by_range(8, a) */ id a,
        now() - make_dt_interval(0, cast(id as int), 30) ts, date_sub(current_date(), cast(id / 24 as int)) d,
        cast(now() - make_dt_interval(0, cast(id as int), 30) as timestamp_ntz) ntz,
        unix_timestamp() - id * 3600 - 1800 u, 1 now from range(1000)"""
    )
    write_stats(collect(spark, T, ["a", "ts", "d", "ntz", "u"]), location(spark, T))
    return T


# a query for the last days, which must read one file, or two
RECENT = [
    "select * from {t} where ts >= current_timestamp() - interval 3 days",
    "select * from {t} where ts >= current_timestamp - interval '3' day",
    "select * from {t} where ts > NOW ( /* no argument */ ) - interval 72 hours and a >= 0",
    "select * from {t} where ntz > localtimestamp() - interval 3 days",
    "select * from {t} where d >= date_sub(current_date(), 3)",
    "select * from {t} where d >= current_date - 3",
    "select * from {t} where d >= curdate() - interval 3 days",
    "select * from {t} where d >= date_add(cast(now() as date), -3)",
    "select * from {t} where u >= unix_timestamp() - 259200",
    "select * from {t} where ts between date_sub(current_date(), 2) and current_timestamp()",
    "with r as (select * from {t} where d > current_date - 3) select count(*) c, max(ts) from r",
    "select a, current_timestamp() as loaded_at from {t} where a = 5",
    "select a, now() from {t} where a = 5",
    "select a, now() - interval 1 day, (now()), current_date from {t} where a = 5",
    "select current_date, current_timestamp, count(*) from {t} where a = 5 group by current_date, current_timestamp",
    "select `now()` from (select a, now() from {t}) where a = 5",
    "select a from {t} where a = 5 and now() = current_timestamp and cast(now() as date) = current_date",
    "select a, 'x now()' /* now() */ as now from {t} where d >= current_date() - 3 -- current_date",
    "select now from {t} where a = 5 and ts < now()",
    "select a from {t} where a < 5 order by now(), a",
    "select a from {t} where a = 5 and exists (select 1 from {t} where d > current_date - 1)",
    "select a from {t} where a < (select cast(min(a) as int) + 5 from {t} where d >= current_date - 1)",
]


@pytest.mark.parametrize("sql", [sql.format(t=T) for sql in RECENT])
def test_the_clock_chooses_files(spark: SparkSession, recent: str, sql: str) -> None:
    pruned = prepare(spark, sql)
    assert pruned.reads, pruned.reason
    assert min(read.files_read for read in pruned.reads) <= 2
    rows, whole = spark.sql(pruned.sql), spark.sql(sql)
    assert [(f.name, f.dataType, f.nullable) for f in rows.schema] == [
        (f.name, f.dataType, f.nullable) for f in whole.schema
    ]
    assert files_read(rows) < files_read(whole)
    shown = [name for name, kind in rows.dtypes if kind not in ("timestamp", "date") or name in ("ts", "d")]
    assert sorted(map(str, rows.select(*shown).collect())) == sorted(map(str, whole.select(*shown).collect()))
    assert rows.count() == whole.count() > 0


def test_one_moment_for_the_whole_statement(spark: SparkSession, recent: str) -> None:
    sql = f"""select now() a, current_timestamp b, cast(localtimestamp() as timestamp) c, cast(now() as date) d,
        current_date e, unix_timestamp() f, unix_timestamp(now()) g from {T} where a = 5
        union all select now(), now(), current_timestamp, current_date, curdate(), unix_timestamp(now()), 0
        from {T} where a = 6"""
    for zone in ("UTC", "Pacific/Kiritimati", "America/St_Johns"):
        with settings(spark, {"spark.sql.session.timeZone": zone}):
            one, two = query(spark, sql).collect()
            assert len({one.a, one.b, one.c, two.a, two.b, two.c}) == 1
            assert len({one.d, one.e, two.d, two.e}) == 1
            assert len({one.f, one.g, two.f}) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "select a from {t} where a = 5 and '{t}' <> current_user() and ts < now()",
        "select a from {t} join hourly on ts > h where a = 5 and ts < now()",
    ],
)
def test_a_clock_that_cannot_be_replaced_leaves_all(spark: SparkSession, recent: str, sql: str) -> None:
    spark.sql("create or replace temporary view hourly as select date_trunc('hour', now()) h")
    try:
        pruned = prepare(spark, sql.format(t=T))
        assert not pruned.reads
        assert "moment" in pruned.reason
        assert pruned.sql == sql.format(t=T)
    finally:
        spark.catalog.dropTempView("hourly")


def test_the_day_of_a_view_is_checked_as_the_statement_runs(spark: SparkSession, recent: str) -> None:
    spark.sql("create or replace temporary view daily as select current_date() d")
    try:
        pruned = prepare(spark, f"select a from {T} t join daily on t.d = daily.d where a < 5")
        assert pruned.reads
        assert "current_date() <=>" in pruned.sql
    finally:
        spark.catalog.dropTempView("daily")


def test_a_function_of_the_session_is_no_clock(spark: SparkSession, recent: str) -> None:
    other = spark.newSession()
    other.udf.register("now", lambda: 5, "int")
    sql = f"select a from {T} where a <= now() and a > 3"
    assert sorted(row.a for row in query(other, sql).collect()) == [4, 5]
