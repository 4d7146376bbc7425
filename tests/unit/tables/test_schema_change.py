from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.tables.schema_change import add_columns_sql, compare, conform, keeps, target_schema
from tests.support import settings


def schema(spark: SparkSession, query: str) -> StructType:
    return spark.sql(query).schema


def change(spark: SparkSession, query: str, table: str, mode: str) -> list[str]:
    ours = schema(spark, table)
    found = target_schema(schema(spark, query), ours, mode)
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


NESTED = "SELECT named_struct('x', 1, 'y', 's') AS s, array(named_struct('x', 1)) AS r, map('k', map(1, 2)) AS m"
CHANGED = (
    "SELECT named_struct('Y', 's', 'n', 1Y, 'X', 1L) AS S, array(named_struct('n', 's', 'x', 1.5D)) AS r, "
    "map('k', map(1L, 2)) AS m"
)


def test_fields_of_structs_are_compared_as_columns_are(spark: SparkSession) -> None:
    found = compare(schema(spark, CHANGED), schema(spark, NESTED))
    assert str(found) == (
        "new: s.n tinyint, r.element.n string; of another type: s.x bigint, r.element.x double, m.value.key bigint"
    )
    other = compare(schema(spark, NESTED), schema(spark, CHANGED))
    assert str(other).startswith("missing: S.n tinyint, r.element.n string; of another type: S.X int")
    assert not compare(
        schema(spark, "SELECT named_struct('b', 1, 'A', 2) AS s"),
        schema(spark, "SELECT named_struct('a', 1, 'b', 2) AS s"),
    )
    case = compare(schema(spark, CHANGED), schema(spark, NESTED), sensitive=True)
    assert str(case).startswith("new: S struct<Y:string,n:tinyint,X:bigint>, r.element.n string; missing: s struct<")


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("ignore", ["s struct<x:int,y:string>", "r array<struct<x:int>>", "m map<string,map<int,int>>"]),
        (
            "append_new_columns",
            ["s struct<x:int,y:string,n:tinyint>", "r array<struct<x:int,n:string>>", "m map<string,map<int,int>>"],
        ),
        (
            "sync_all_columns",
            [
                "s struct<x:bigint,y:string,n:tinyint>",
                "r array<struct<x:double,n:string>>",
                "m map<string,map<bigint,int>>",
            ],
        ),
    ],
)
def test_modes_go_for_fields_of_structs(spark: SparkSession, mode: str, wanted: list[str]) -> None:
    assert change(spark, CHANGED, NESTED, mode) == wanted


def test_sync_drops_fields_that_the_query_lacks_and_keeps_types_where_it_has_only_null(spark: SparkSession) -> None:
    less = "SELECT named_struct('x', null) AS s, array() AS r, map() AS m"
    assert change(spark, less, NESTED, "sync_all_columns") == [
        "s struct<x:int>", "r array<struct<x:int>>", "m map<string,map<int,int>>",
    ]  # fmt: skip
    with pytest.raises(SchemaChangeError, match=r"lacks columns of the table .missing: s\.y string"):
        change(spark, less, NESTED, "ignore")


@pytest.mark.parametrize(
    ("query", "table", "advice"),
    [
        (
            "SELECT 1L AS a, 2 AS b",
            "SELECT 1L AS a",
            "Set it to 'append_new_columns' or 'sync_all_columns', or run the",
        ),
        ("SELECT 1 AS a", "SELECT 1L AS a", "Set it to 'append_new_columns', or run the"),
        ("SELECT 1L AS a", "SELECT 1 AS a", "Set it to 'sync_all_columns', or run the"),
        ("SELECT 1 AS a", "SELECT 's' AS a", "Set it to 'append_new_columns', or run the"),
        ("SELECT array(1) AS a", "SELECT 's' AS a", r"is 'fail'\. Run the model with --full-refresh\."),
        ("SELECT map(1L, 1) AS a", "SELECT map('x', 1) AS a", r"is 'fail'\. Run the model with --full-refresh\."),
    ],
)
def test_modes_that_may_not_take_a_change_are_not_advised(
    spark: SparkSession, query: str, table: str, advice: str
) -> None:
    with pytest.raises(SchemaChangeError, match=advice):
        change(spark, query, table, "fail")


def test_what_the_config_names_must_be_there_after_an_advice(spark: SparkSession) -> None:
    query, table = schema(spark, "SELECT 1 AS b"), schema(spark, "SELECT 1 AS a, 1 AS b")
    with pytest.raises(SchemaChangeError, match=r"default\. Set it to 'append_new_columns', which makes them NULL\.$"):
        target_schema(query, table, "ignore", serves=lambda columns: "a" in columns.names)
    with pytest.raises(SchemaChangeError, match=r"default\. Let the query give the table's columns"):
        target_schema(query, table, "ignore", serves=lambda _: False)


def test_files_of_a_table_stay_only_if_no_field_of_its_structs_changes(spark: SparkSession) -> None:
    table = schema(spark, "SELECT 1 AS a, named_struct('x', 1) AS s")
    assert keeps(table, schema(spark, "SELECT 2 AS a, named_struct('x', null + 1) AS s, 3 AS more"))
    assert not keeps(table, schema(spark, "SELECT 2 AS a, named_struct('x', 1, 'n', 2) AS s"))
    assert not keeps(table, schema(spark, "SELECT 2 AS a"))
    # the same text, though other fields
    one, other = ("SELECT named_struct('a:int,b', 1) AS s", "SELECT named_struct('a', 1, 'b', 1) AS s")
    assert not keeps(schema(spark, one), schema(spark, other))


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
        ("SELECT array(1) AS a", "SELECT map(1, 1) AS a"),
        ("SELECT named_struct('x', 1) AS a", "SELECT 's' AS a"),
        ("SELECT date'2020-01-01' AS a", "SELECT 1 AS a"),
    ],
)
def test_a_type_that_cannot_become_the_other_is_an_error(spark: SparkSession, query: str, table: str) -> None:
    with pytest.raises(SchemaChangeError, match=r"column 'a' .*cannot become.*--full-refresh"):
        conform(spark.sql(query), schema(spark, table))


def test_columns_are_added_with_their_comments(spark: SparkSession) -> None:
    columns = schema(spark, "SELECT 1 AS `a b`, named_struct('x y', 1) AS s").fields
    assert add_columns_sql("`d`.`t`", columns, {"a b": "it's"}) == (
        "ALTER TABLE `d`.`t` ADD COLUMNS (`a b` int COMMENT 'it\\'s', `s` STRUCT<`x y`: int>)"
    )
