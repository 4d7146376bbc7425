from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.models.session_scope import _SET, ModelScopes, run_in_sibling_session

KEY = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        (f"set {KEY}=9", KEY),
        (f"/* app */\n -- why\n SET `{KEY}` = 9", KEY),
        ("set time zone 'Asia/Tokyo'", "spark.sql.session.timeZone"),
        (f"reset {KEY}", KEY),
        (f"set {KEY}", None),
        ("set -v", None),
        ("select 'set a = 1'", None),
        ("-- set a = 1\nselect 1", None),
    ],
)
def test_a_statement_that_changes_a_setting_is_known(spark: SparkSession, sql: str, key: str | None) -> None:
    scopes = ModelScopes()
    with scopes.enter(spark) as scope:
        scopes.track_statement(spark, sql)
        assert scope.keys == ({key} if key else set())


def test_a_setting_is_put_back_by_the_last_model_that_changed_it(spark: SparkSession) -> None:
    before = spark.conf.get(KEY)
    scopes = ModelScopes()
    first = scopes.enter(spark)
    spark.conf.set(KEY, "11")
    scopes.track_changes(spark)
    second = scopes.enter(spark)
    scopes.track_statement(spark, f"set {KEY} = 12")
    spark.conf.set(KEY, "12")
    spark.conf.set("spark.nobody.knows", "x")
    scopes.track_changes(spark)
    first.close()
    assert spark.conf.get(KEY) == "12"
    second.close()
    assert spark.conf.get(KEY) == before
    assert spark.conf.get("spark.nobody.knows", None) is None


def test_what_one_batch_set_is_set_again_for_the_next(spark: SparkSession) -> None:
    before = spark.conf.get(KEY)
    scopes = ModelScopes()
    with scopes.enter(spark):
        for sql in (f"set {KEY} = 11", "set spark.nobody.knows = x", "reset spark.nobody.knows"):
            scopes.track_statement(spark, sql)
            spark.sql(sql)
        scopes.save_settings(spark, "m")
    assert spark.conf.get(KEY) == before
    spark.conf.set("spark.nobody.knows", "y")
    with scopes.enter(spark):
        scopes.apply_saved(spark, "another")
        assert spark.conf.get(KEY) == before
        scopes.apply_saved(spark, "m")
        assert spark.conf.get(KEY) == "11"
        assert spark.conf.get("spark.nobody.knows", None) is None
    assert (spark.conf.get(KEY), spark.conf.get("spark.nobody.knows")) == (before, "y")
    spark.conf.unset("spark.nobody.knows")


def test_a_secret_is_put_back_as_it_was(spark: SparkSession) -> None:
    spark.conf.set("spark.my.password", "hush")
    scopes = ModelScopes()
    with scopes.enter(spark):
        scopes.track_statement(spark, "set spark.my.password = other")
        spark.conf.set("spark.my.password", "other")
    assert spark.conf.get("spark.my.password") == "hush"
    spark.conf.unset("spark.my.password")


def test_outside_of_models_a_setting_stays(spark: SparkSession) -> None:
    scopes = ModelScopes()
    scopes.track_statement(spark, f"set {KEY} = 12")
    assert scopes.current() is None
    assert not scopes._changed


def test_a_view_ends_with_its_model(spark: SparkSession) -> None:
    scopes = ModelScopes()
    with scopes.enter(spark):
        names = [scopes.create_view(spark.range(3), "orders") for _ in range(2)]
        assert names[0] != names[1]
        assert spark.table(f"global_temp.{names[0]}").count() == 3
        twice = scopes.create_view(spark.sql("SELECT 1 AS a, 2 AS a"), "orders")
        assert spark.table(f"global_temp.{twice}").columns == ["a", "a"]
    # temporary views of the session, which other tests leave, are listed there as well
    left = [view.name for view in spark.catalog.listTables("global_temp")]
    assert not [name for name in left if name.startswith("orders__dbt_tmp")]


def test_a_statement_in_a_sibling_session_has_our_settings_and_its_own(spark: SparkSession, database: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        sql = f"create table {database}.t using parquet as select '${{{KEY}}}' as n, current_timezone() as zone"
        assert run_in_sibling_session(spark, sql, {KEY: "13"})
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert spark.table(f"{database}.t").collect() == [("13", "Asia/Tokyo")]
    assert spark.conf.get(KEY) != "13"
    assert spark.range(1).rdd.toDF().sparkSession is spark


def test_many_comments_take_no_time() -> None:
    started = time.monotonic()
    assert _SET.match("/* a */\n" * 60 + "select 1") is None
    found = _SET.match("/* a * b */ -- c\n" * 60 + "set a.b = 1")
    assert found is not None
    assert found["key"] == "a.b"
    assert time.monotonic() - started < 1
