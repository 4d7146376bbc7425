from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.pruning import make_predicates, sound
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats
from tests.unit.pruning.helpers import location

NAMES = [f"c{number}" for number in range(20)]
WIDE = ", ".join(f"id + {number} AS {name}" for number, name in enumerate(NAMES))


def test_makes_predicates_of_every_column_that_hold(spark: SparkSession, table: str) -> None:
    predicates = make_predicates(spark, table, most=60)
    assert len(predicates) >= 33
    assert {p.split("`")[1] for p in predicates} >= {"a", "s", "d", "ts", "st", "x", "flag", "dec"}
    assert sound(spark, table, predicates[::6]) == []


def test_finds_statistics_that_lie(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE IF NOT EXISTS pruning_unit.lies USING parquet AS SELECT * FROM {table}")
    stats = collect(spark, "pruning_unit.lies", ["a"])
    low = f.expr("named_struct('a', named_struct('min_value', 5000, 'max_value', 6000, 'null_count', 0L))")
    write_stats(stats.withColumn("columns", low), location(spark, "pruning_unit.lies"))
    found = sound(spark, "pruning_unit.lies", ["a = 5", "a = 5500"])
    assert [(m.predicate, m.pruned_rows, m.full_rows) for m in found] == [("a = 5", 0, 1)]


def test_every_column_is_asked_and_every_kind_of_predicate(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE IF NOT EXISTS pruning_unit.wide USING parquet AS SELECT {WIDE} FROM range(9)")
    write_stats(collect(spark, "pruning_unit.wide", NAMES), location(spark, "pruning_unit.wide"))
    predicates = make_predicates(spark, "pruning_unit.wide")
    assert len(predicates) == 40
    assert {predicate.split("`")[1] for predicate in predicates} == set(NAMES)
    for form in ("IS NULL", "IS NOT NULL", " = ", " <> ", "BETWEEN", " IN ", "<=>"):
        assert any(form in predicate for predicate in predicates), form


def test_names_with_dots_are_asked_for_as_they_are(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.dotted"
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {name} USING parquet AS "
        "SELECT id AS `a.b`, named_struct('c.d', id, 'e', id) AS st FROM range(9)"
    )
    columns = ["`a.b`", "st.`c.d`", "st.e"]
    write_stats(collect(spark, name, columns), location(spark, name))
    predicates = make_predicates(spark, name)
    for column in ("`a.b` ", "`st`.`c.d` ", "`st`.`e` "):
        assert any(predicate.startswith(column) for predicate in predicates), column
    assert sound(spark, name, predicates) == []
