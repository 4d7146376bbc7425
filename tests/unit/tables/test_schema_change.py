from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.tables.schema_change import add_columns_sql, compare, conform, target_schema
from tests.support import settings


def schema(spark: SparkSession, query: str) -> StructType:
    return spark.sql(query).schema


def change(spark: SparkSession, query: str, table: str, mode: str) -> list[str]:
    ours = schema(spark, table)
    found = target_schema(compare(schema(spark, query), ours), ours, mode)
    return [f"{column.name} {column.dataType.simpleString()}" for column in found.fields]


TABLE = "SELECT 1L AS a, 's' AS b, 2 AS c"


@pytest.mark.parametrize(
    ("query", "mode", "wanted"),
    [
        (TABLE, "fail", ["a bigint", "b string", "c int"]),
        ("SELECT 2 AS C, 's' AS B, 1L AS A", "fail", ["a bigint", "b string", "c int"]),
        ("SELECT 1 AS a, 's' AS b, 2L AS c, 3 AS d", "ignore", ["a bigint", "b string", "c int"]),
        ("SELECT 1 AS a, 's' AS b, 3 AS d", "append_new_columns", ["a bigint", "b string", "c int", "d int"]),
        ("SELECT 1.5D AS a, 's' AS b, 3 AS d", "sync_all_columns", ["a double", "b string", "d int"]),
    ],
)
def test_modes(spark: SparkSession, query: str, mode: str, wanted: list[str]) -> None:
    assert change(spark, query, TABLE, mode) == wanted


@pytest.mark.parametrize(
    ("query", "mode", "message"),
    [
        ("SELECT 1L AS a, 's' AS b, 2 AS c, 3 AS d", "fail", "new: d int"),
        ("SELECT 1L AS a, 's' AS b", "fail", "missing: c int"),
        ("SELECT 1 AS a, 's' AS b, 2 AS c", "fail", "of another type: a int"),
        ("SELECT 1L AS a, 's' AS b", "ignore", "lacks columns of the table .missing: c int"),
    ],
)
def test_what_a_mode_does_not_allow(spark: SparkSession, query: str, mode: str, message: str) -> None:
    with pytest.raises(SchemaChangeError, match=message):
        change(spark, query, TABLE, mode)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows_take_the_tables_form(spark: SparkSession, ansi: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        df = spark.sql("SELECT '7' AS c, cast(null as int) AS a, 9 AS other, 'x' AS B")
        found = conform(df, schema(spark, "SELECT 1L AS a, 's' AS b, 2 AS c, date'2020-01-01' AS d"))
        assert found.columns == ["a", "b", "c", "d"]
        assert found.collect() == [(None, "x", 7, None)]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(("value", "kind"), [("'x'", "1"), ("300", "1Y"), ("1e30D", "1"), ("12345", "1.5")])
def test_a_value_that_does_not_fit_is_an_error_and_never_null(
    spark: SparkSession, ansi: str, value: str, kind: str
) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        found = conform(spark.sql(f"SELECT {value} AS `a b`"), schema(spark, f"SELECT {kind} AS `a b`"))
        with pytest.raises(Exception, match="A value of column a b does not fit into"):
            found.collect()


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("SELECT array(1) AS a", "SELECT array(1L) AS a"),
        ("SELECT named_struct('x', 1) AS a", "SELECT 's' AS a"),
        ("SELECT date'2020-01-01' AS a", "SELECT 1 AS a"),
    ],
)
def test_a_type_that_cannot_become_the_other_is_an_error(spark: SparkSession, query: str, table: str) -> None:
    with pytest.raises(SchemaChangeError, match=r"(not converted|cannot become)"):
        conform(spark.sql(query), schema(spark, table))


def test_columns_are_added_with_their_comments(spark: SparkSession) -> None:
    columns = schema(spark, "SELECT 1 AS `a b`, named_struct('x y', 1) AS s").fields
    assert add_columns_sql("`d`.`t`", columns, {"a b": "it's"}) == (
        "ALTER TABLE `d`.`t` ADD COLUMNS (`a b` int COMMENT 'it\\'s', `s` STRUCT<`x y`: int>)"
    )
