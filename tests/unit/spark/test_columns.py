from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from dbt_zorder.errors import ColumnError
from dbt_zorder.spark.columns import (
    all_columns,
    case_sensitive,
    find_column,
    leaf_names,
    naming,
    quote_column,
    resolve,
    resolve_all,
    split_name,
)
from tests.support import settings

ADDRESS = StructType().add("City", StringType()).add("geo", StructType().add("lat", LongType()).add("x.y", LongType()))
SCHEMA = (
    StructType()
    .add("id", IntegerType())
    .add("Name", StringType())
    .add("dotted.name", IntegerType())
    .add("tick`ed", IntegerType())
    .add("address", ADDRESS)
    .add("a", StructType().add("b", IntegerType()))
    .add("a.b", StringType())
)


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("id", ("id",)),
        ("ID", ("id",)),
        ("name", ("Name",)),
        ("dotted.name", ("dotted.name",)),
        ("`dotted.name`", ("dotted.name",)),
        ("tick`ed", ("tick`ed",)),
        ("`tick``ed`", ("tick`ed",)),
        ("address.city", ("address", "City")),
        ("ADDRESS.GEO.LAT", ("address", "geo", "lat")),
        ("address.geo.`x.y`", ("address", "geo", "x.y")),
        ("address.geo", ("address", "geo")),
        ("a.b", ("a.b",)),
        ("`a`.b", ("a", "b")),
    ],
)
def test_finds_what_spark_would_find(written: str, path: tuple[str, ...]) -> None:
    assert resolve(written, SCHEMA).path == path


def test_spark_reads_the_sql_of_a_resolved_column(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    for written in leaf_names(SCHEMA):
        if written == "address.geo.x.y":
            continue
        column = resolve(written, SCHEMA)
        assert frame.selectExpr(column.sql).schema[0].dataType == column.data_type


@pytest.mark.parametrize("written", ["", "nope", "id.x", "address.nope", "name.first", "address.geo.x.y", "."])
def test_an_unknown_column_is_an_error_that_lists_what_is_there(written: str) -> None:
    with pytest.raises(ColumnError, match="There is no column") as caught:
        resolve(written, SCHEMA)
    assert "address.geo.lat" in str(caught.value)


@pytest.mark.parametrize(("written", "nearest"), [("addres.city", "address.City"), ("nmae", "Name"), ("ide", "id")])
def test_the_nearest_column_is_named(written: str, nearest: str) -> None:
    with pytest.raises(ColumnError, match=f"Did you mean '{nearest}'"):
        resolve(written, SCHEMA)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("id, Name", r"Several columns are a list: \['id', 'Name'\]"),
        ("(id, Name)", r"Several columns are a list: \['id', 'Name'\]"),
        ("date(id)", "Only a column can be named, no expression"),
        ("id desc", "Only a column can be named, no expression"),
        ('"id"', "Leave out the quotes: id"),
    ],
)
def test_what_is_no_column_but_meant_for_one_is_told(written: str, hint: str) -> None:
    with pytest.raises(ColumnError, match=f"zorder_by: There is no column .* {hint}"), naming("zorder_by"):
        resolve(written, SCHEMA)


def test_a_name_of_the_stats_is_written_as_a_user_would() -> None:
    inner = StructType().add("x.y", IntegerType())
    schema = StructType().add("a", IntegerType()).add("s", inner).add("p.q", IntegerType())
    for column in all_columns(schema):
        assert resolve(quote_column(column.name, schema), schema) == column
    assert quote_column("gone", schema) == "gone"


def test_no_columns_at_all_is_said() -> None:
    with pytest.raises(ColumnError, match="The columns are: none"):
        resolve("a", StructType())


def test_case_counts_only_where_the_session_says_so() -> None:
    schema = StructType().add("a", IntegerType()).add("A", IntegerType())
    with pytest.raises(ColumnError, match="'a', 'A' differ only by case"):
        resolve("a", schema)
    assert resolve("A", schema, sensitive=True).path == ("A",)
    with pytest.raises(ColumnError, match="There is no column 'NAME'"):
        resolve("NAME", SCHEMA, sensitive=True)


def test_ambiguity_is_found_inside_structs() -> None:
    schema = StructType().add("s", StructType().add("x", IntegerType()).add("X", IntegerType()))
    with pytest.raises(ColumnError, match="ambiguous"):
        resolve("s.x", schema)


@pytest.mark.parametrize("names", [["id", "ID"], ["id", "`id`"], ["address.city", "Address.City"]])
def test_a_column_named_twice_is_an_error_in_any_spelling(names: list[str]) -> None:
    with pytest.raises(ColumnError, match="named twice"):
        resolve_all(names, SCHEMA)


def test_order_is_kept() -> None:
    assert [column.name for column in resolve_all(["name", "id", "a.b"], SCHEMA)] == ["Name", "id", "a.b"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("a.`b.c`", ["a", "b.c"]),
        ("`a``b`.c", ["a`b", "c"]),
        ("`.`", ["."]),
        ("", [""]),
        ("a..b", ["a", "", "b"]),
    ],
)
def test_names_split_at_dots_outside_backticks(name: str, parts: list[str]) -> None:
    assert split_name(name) == parts


def test_case_sensitivity_is_read_from_the_session(spark: SparkSession) -> None:
    assert not case_sensitive(spark)
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        assert case_sensitive(spark)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("id", ("id",)),
        ("dotted.name", ("dotted.name",)),
        ("tick`ed", ("tick`ed",)),
        ("address.City", ("address", "City")),
        ("address.geo.x.y", ("address", "geo", "x.y")),
        ("address.city", None),
        ("a.b", None),  # of a leaf and of a column
        ("gone", None),
    ],
)
def test_a_dotted_name_of_stats_is_found_if_it_is_of_one_column(name: str, path: tuple[str, ...] | None) -> None:
    found = find_column(name, SCHEMA)
    assert (found.path if found else None) == path
