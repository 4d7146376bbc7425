from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.tables.conversion import converted, fits
from dbt_zorder.tables.schema_change import conform
from tests.support import settings


def kind(spark: SparkSession, ddl: str) -> DataType:
    return spark.sql(f"SELECT CAST(NULL AS {ddl}) AS c").schema["c"].dataType


def value(spark: SparkSession, text: str, ddl: str, *, sensitive: bool = False) -> Any:
    """Return what ``text`` becomes in a type, as JSON would have it."""
    df = spark.sql(f"SELECT {text} AS c")
    wanted = kind(spark, ddl)
    found = df.select(f.expr(converted("`c`", df.schema["c"].dataType, wanted, "c", sensitive)).alias("c"))
    assert found.schema["c"].dataType.simpleString() == wanted.simpleString()
    row: Any = found.collect()[0].asDict(recursive=True)
    return row["c"]


@pytest.mark.parametrize(
    ("text", "ddl", "wanted"),
    [
        ("named_struct('a', 1, 'n', 9, 'b', 2)", "struct<a:int,b:int>", {"a": 1, "b": 2}),
        ("named_struct('b', 2, 'A', 1)", "struct<a:int,b:int,n:string>", {"a": 1, "b": 2, "n": None}),
        ("named_struct('a', 1)", "struct<a:bigint>", {"a": 1}),
        ("named_struct('a', 1.25)", "struct<a:decimal(10,3)>", {"a": 1.25}),
        ("named_struct('a', cast(0.5 AS float))", "struct<a:double>", {"a": 0.5}),
        ("if(rand() > 2, named_struct('b', 2), NULL)", "struct<a:int,b:int>", None),
        ("array(named_struct('b', 2), NULL)", "array<struct<a:int,b:bigint>>", [{"a": None, "b": 2}, None]),
        ("array(array(1), NULL, array())", "array<array<bigint>>", [[1], None, []]),
        ("array()", "array<struct<a:int>>", []),
        ("map()", "map<string,int>", {}),
        ("NULL", "struct<a:int>", None),
        (
            "map('k', named_struct('b', 2), 'n', NULL)",
            "map<string,struct<a:int,b:int>>",
            {"k": {"a": None, "b": 2}, "n": None},
        ),
        ("map(1, 's')", "map<bigint,string>", {1: "s"}),
        (
            "array(named_struct('m', map('k', array(named_struct('y', 1, 'x', 's')))))",
            "array<struct<m:map<string,array<struct<x:string,y:bigint,z:int>>>>>",
            [{"m": {"k": [{"x": "s", "y": 1, "z": None}]}}],
        ),
        (
            "named_struct('it\\'s `a`.b', 1, '$ {x}', 2)",
            "struct<`$ {x}`:int,`it's ``a``.b`:bigint>",
            {"$ {x}": 2, "it's `a`.b": 1},
        ),
        ("named_struct('d', date'2020-01-02')", "struct<d:string>", {"d": "2020-01-02"}),
    ],
)  # fmt: skip
def test_values_are_converted_by_name(spark: SparkSession, text: str, ddl: str, wanted: Any) -> None:
    found = value(spark, text, ddl)
    assert (float(found["a"]) if "decimal" in ddl else found) == (wanted["a"] if "decimal" in ddl else wanted)


def test_keys_may_get_fields_and_wider_types(spark: SparkSession) -> None:
    found = spark.sql("SELECT map(named_struct('b', 1, 'a', 2), 3) AS c")
    wanted = "map<struct<a:bigint,b:int,n:int>,bigint>"
    after = found.select(
        f.expr(converted("`c`", found.schema["c"].dataType, kind(spark, wanted), "c", False)).alias("c")
    )
    assert after.selectExpr("map_entries(c)[0].key.a", "map_entries(c)[0].key.b", "map_values(c)[0]").collect() == [
        (2, 1, 3)
    ]


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("map('1', 's')", "map<int,string>"),
        ("map(1.5D, 's')", "map<bigint,string>"),
        ("map(1, 's')", "map<string,string>"),
        ("map(named_struct('a', 1, 'b', 2), 's')", "map<struct<a:int>,string>"),
    ],
)
def test_keys_of_maps_that_might_become_one_are_not_converted(spark: SparkSession, text: str, ddl: str) -> None:
    with pytest.raises(SchemaChangeError, match=r"keys of the map 'c' are .*, and not each of them would stay one"):
        value(spark, text, ddl)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("text", "ddl", "name"),
    [
        ("named_struct('a', 300)", "struct<a:tinyint>", "c.a"),
        ("array(1, 300)", "array<tinyint>", "c.element"),
        ("map('k', named_struct('a', array('x')))", "map<string,struct<a:array<int>>>", "c.value.a.element"),
        ("named_struct('a', 12345.5)", "struct<a:decimal(5,1)>", "c.a"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_and_never_null(
    spark: SparkSession, ansi: str, text: str, ddl: str, name: str
) -> None:
    why = f"A value of column {name} does not fit into"
    with settings(spark, {"spark.sql.ansi.enabled": ansi}), pytest.raises(Exception, match=why):
        value(spark, text, ddl)


@pytest.mark.parametrize(
    ("text", "ddl"),
    [("named_struct('a', 1)", "string"), ("array(1)", "int"), ("named_struct('a', 's')", "struct<a:array<string>>")],
)
def test_what_holds_others_does_not_become_a_single_value(spark: SparkSession, text: str, ddl: str) -> None:
    with pytest.raises(SchemaChangeError, match=r"The column 'c(.a)?' is .*, which cannot become"):
        value(spark, text, ddl)


def test_fields_that_differ_by_case_follow_the_session(spark: SparkSession) -> None:
    text = "named_struct('a', 1, 'A', 2)"
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        assert value(spark, text, "struct<A:bigint,b:int,a:int>", sensitive=True) == {"A": 2, "b": None, "a": 1}
        assert value(spark, "named_struct('a', 1)", "struct<A:int>", sensitive=True) == {"A": None}
    with pytest.raises(SchemaChangeError, match="the fields 'a' and 'A', which differ only by case"):
        value(spark, text, "struct<a:bigint>")


def test_a_field_is_not_taken_for_a_column_of_a_table_that_is_named_as_its_struct(spark: SparkSession) -> None:
    df = spark.sql("SELECT 7 AS a, named_struct('a', 1) AS s, array(named_struct('x', 1)) AS item_0").alias("s")
    wanted = spark.sql(
        "SELECT named_struct('n', 1, 'a', 1) AS s, array(named_struct('x', 1L)) AS item_0, 7 AS a"
    ).schema
    assert conform(df, wanted).collect() == [((None, 1), [(1,)], 7)]


@pytest.mark.parametrize(
    ("found", "wanted", "yes"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "double", True),
        ("bigint", "double", False),
        ("smallint", "float", True),
        ("int", "float", False),
        ("float", "double", True),
        ("int", "decimal(10,0)", True),
        ("int", "decimal(10,1)", False),
        ("decimal(10,2)", "decimal(12,3)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("decimal(10,2)", "decimal(10,1)", False),
        ("date", "string", True),
        ("binary", "string", False),
        ("string", "int", False),
        ("struct<a:int>", "struct<n:int>", True),
        ("struct<a:int>", "struct<b:int,A:bigint>", True),
        ("array<int>", "array<bigint>", True),
        ("map<int,int>", "map<bigint,string>", True),
        ("map<int,int>", "map<string,int>", False),
        ("map<struct<a:int,b:int>,int>", "map<struct<a:int>,int>", False),
        ("struct<a:int>", "string", False),
        ("int", "array<int>", False),
        ("void", "struct<a:int>", True),
    ],
)
def test_fits(spark: SparkSession, found: str, wanted: str, yes: bool) -> None:
    assert fits(kind(spark, found), kind(spark, wanted), False) is yes
