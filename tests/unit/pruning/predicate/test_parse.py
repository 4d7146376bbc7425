"""Forms of a predicate's text that are read as they are meant, or in full."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, scan, scan_sql
from dbt_zorder.pruning.predicate.dialect import _is_compiled
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import settings


@pytest.mark.parametrize(
    "predicate",
    [
        "a in (select 5)",
        "a = 5 and exists (select 1)",
        "a = (select max(b) - 994 from pruning_unit.t)",
        "not exists (select 1 from pruning_unit.t as o where o.b < t.b - 5 or t.b <> 5)",
    ],
)
def test_subqueries_are_read_in_full(spark: SparkSession, table: str, predicate: str) -> None:
    assert [row.a for row in scan(spark, table, predicate).collect()] == [5]
    assert [row.a for row in spark.sql(f"SELECT * FROM {scan_sql(spark, table, predicate)} AS t").collect()] == [5]
    assert "subquery" in explain(spark, table, predicate).reason


NAMES = [
    "comment",
    "load",
    "show",
    "set",
    "refresh",
    "call",
    "if",
    "cache",
    "analyze",
    "describe",
    "use",
    "kill",
    "begin",
]


NOT_PARSED = {"show", "call", "if", "describe"}
"""Those that sqlglot takes for no column, so that all files are read."""


def test_columns_may_be_called_as_a_statement_begins(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.statements"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    columns = ", ".join(f"id AS {column}" for column in NAMES)
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT /*+ repartition(3, id) */ id, {columns} FROM range(1000)")
    rebuild_stats(spark, TableName(*name.split(".")), NAMES)
    for column in NAMES:
        for predicate in (f"{column} <= 1 and id < 500", column + "=1 or " + column + " = 0"):
            assert sorted(row.id for row in scan(spark, name, predicate).collect()) == [0, 1]
        assert explain(spark, name, f"{column} < 0").files_read == (3 if column in NOT_PARSED else 0)


def test_many_parentheses_are_read_in_full_at_worst(spark: SparkSession, table: str) -> None:
    for depth in (10, 60, 400):
        predicate = "(" * depth + "a = 5" + ")" * depth
        assert [row.a for row in scan(spark, table, predicate).collect()] == [5]
        assert [row.a for row in spark.sql(f"SELECT * FROM {scan_sql(spark, table, predicate)}").collect()] == [5]
        # how deep it follows where it is compiled, is sqlglot's own matter
        deep = (1, 8) if _is_compiled() else (8,)
        assert explain(spark, table, predicate).files_read in ((1,) if depth == 10 else deep)


@pytest.mark.parametrize("predicate", ["a = 1 -- x", "a = 1 /* x */", "a = 1 --", "a = 1 -- ) or (true", "a = 1 -- \\"])
def test_comments_swallow_nothing(spark: SparkSession, table: str, predicate: str) -> None:
    assert spark.sql(f"SELECT a FROM {scan_sql(spark, table, predicate)} AND_MORE WHERE a < 10").collect() == [(1,)]


def test_comment_that_goes_on_is_read_in_full(spark: SparkSession, table: str) -> None:
    predicate = "a = 1 -- x \\\n or a = 999"
    explained = explain(spark, table, predicate)
    assert explained.files_read == 8
    assert "backslash" in explained.reason
    assert scan(spark, table, predicate).count() == spark.table(table).where(predicate).count()


def test_strings_that_spark_is_told_to_read_otherwise_are_read_in_full(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.slashes"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT 'a' || chr(92) || 'b' AS s UNION ALL SELECT 'a_'")
    rebuild_stats(spark, TableName(*name.split(".")), ["s"])
    with settings(spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        predicate = r"s like 'a\\_'"
        rows = spark.table(name).where(predicate).collect()
        assert scan(spark, name, predicate).collect() == rows
        assert spark.sql(f"SELECT * FROM {scan_sql(spark, name, predicate)}").collect() == rows
        assert len(rows) == 1
        assert "escapedStringLiterals" in explain(spark, name, predicate).reason


@pytest.mark.parametrize("predicate", [r"s = '\U00110000'", r"s = '\UFFFFFFFF'"])
def test_a_code_point_that_there_is_not_is_left_to_spark(spark: SparkSession, table: str, predicate: str) -> None:
    assert scan(spark, table, predicate).count() == spark.table(table).where(predicate).count()
