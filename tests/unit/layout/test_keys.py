from __future__ import annotations

import itertools

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.errors import ColumnError
from dbt_zorder.layout.bit_keys import bits_of
from dbt_zorder.layout.keys import SAMPLE_BYTES, key_of
from dbt_zorder.spark.columns import resolve
from tests.support import settings
from tests.unit.layout.frames import cast_values

FLOATS = "'-Infinity', '-1.5', '-1e-40', '-0.0', '0.0', '1e-40', '1.5', 'Infinity', 'NaN'"
LONG = [f"'{'x' * 300}{end}'" for end in "ab"]

# the type, and SQL literals of values of it at its edges
DAY_TO_SECOND = ["'-100 10:00:00.000001' DAY TO SECOND", "'0' DAY", "'0.000001' SECOND"]
YEAR_TO_MONTH = ["'-178956970-7' YEAR TO MONTH", "'0' MONTH", "'1-1' YEAR TO MONTH"]
TIMES = ["'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'2024-03-10 02:30:00'", "'9999-12-31 23:59:59'"]
STRUCTS = ["named_struct('a', 1, 'b', 'z')", "named_struct('a', 2, 'b', 'a')", "named_struct('a', null, 'b', 'a')"]
NESTED = ["named_struct('a', array(named_struct('b', DATE'2024-01-01')))", "named_struct('a', array())"]
TYPES: list[tuple[str, list[str]]] = [
    ("tinyint", ["-128", "-1", "0", "127"]),
    ("smallint", ["-32768", "0", "32767"]),
    ("int", ["-2147483648", "-1", "0", "2147483647"]),
    ("bigint", ["'-9223372036854775808'", "-1", "0", "'9223372036854775807'"]),
    ("boolean", ["false", "true"]),
    ("decimal(9,2)", ["-9999999.99", "-0.01", "0", "9999999.99"]),
    ("decimal(18,6)", ["'-999999999999.999999'", "0", "'0.000001'", "'999999999999.999999'"]),
    ("decimal(38,10)", [f"'-{'9' * 28}.9'", "'-0.0000000001'", "0", "'0.0000000001'", f"'{'9' * 28}.9'"]),
    ("decimal(38,38)", ["'-0.99999999999999999999999999999999999999'", "0", f"'0.{'0' * 37}1'"]),
    ("float", FLOATS.split(", ")),
    ("double", [*FLOATS.split(", "), "'5e-324'", "'1.7976931348623157e308'"]),
    ("date", ["'0001-01-01'", "'1582-10-04'", "'1582-10-15'", "'1970-01-01'", "'9999-12-31'"]),
    ("timestamp", TIMES),
    ("timestamp_ntz", TIMES),
    ("string", ["''", "' '", "'A'", "'a'", "'aa'", "'b'", "'\\u0000'", "'é'", "'漢'", "'🎈'", *LONG]),
    ("binary", ["X''", "X'00'", "X'0000'", "X'7F'", "X'80'", "X'FF'"]),
    ("interval day to second", [f"INTERVAL {text}" for text in DAY_TO_SECOND]),
    ("interval hour", ["INTERVAL '-7' HOUR", "INTERVAL '0' HOUR", "INTERVAL '9' HOUR"]),
    ("interval year to month", [f"INTERVAL {text}" for text in YEAR_TO_MONTH]),
    ("interval year", ["INTERVAL '-7' YEAR", "INTERVAL '0' YEAR"]),
    ("array<int>", ["array()", "array(cast(null as int), 9)", "array(1)", "array(1, 2)", "array(2)"]),
    ("array<string>", ["array('a', 'z')", "array('b')", "array('B')"]),
    ("struct<a: int, b: string>", STRUCTS),
    ("struct<a: array<struct<b: date>>>", NESTED),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "ansi"), [("UTC", "true"), ("America/New_York", "false")])
@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
def test_a_key_keeps_sparks_own_order(spark: SparkSession, zone: str, ansi: str, name: str, values: list[str]) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        rows = cast_values(name, [*values, "NULL"])
        frame = spark.sql(rows)
        key = key_of(resolve("v", frame.schema))
        pairs = frame.selectExpr("v", f"{key.expression} AS k", f"{key.sampled} AS sampled")
        # of any two rows in the order of the values, neither kind of key is in the other order
        swapped = (
            pairs.alias("a").crossJoin(pairs.alias("b")).where("a.v < b.v AND (a.k > b.k OR a.sampled > b.sampled)")
        )
        assert swapped.count() == 0
        assert pairs.where("v IS NULL AND k IS NOT NULL").count() == 0
        assert pairs.where("v IS NOT NULL AND k IS NULL").where("typeof(v) NOT RLIKE 'array|struct'").count() == 0
        assert spark.sql(rows).selectExpr(f"typeof({key.expression})").first() == (key.carrier,)


@pytest.mark.parametrize("name", [name for name, _ in TYPES if "array" not in name and "struct" not in name])
def test_different_values_have_different_keys(spark: SparkSession, name: str) -> None:
    values = dict(TYPES)[name]
    frame = spark.sql(cast_values(name, values))
    key = key_of(resolve("v", frame.schema))
    distinct = frame.selectExpr("count(distinct v)", f"count(distinct {key.expression})").collect()[0]
    assert distinct[0] == distinct[1]


@pytest.mark.parametrize(
    "name", ["map<int, int>", "variant", "array<map<int, int>>", "struct<m: map<int, int>>", "struct<>", "void"]
)
def test_a_type_without_order_is_an_error_that_names_the_column_and_what_can_be_used(
    spark: SparkSession, name: str
) -> None:
    frame = spark.sql(f"SELECT CAST(NULL AS {name}) AS v")
    with pytest.raises(ColumnError, match="The column 'v' is of type") as caught:
        key_of(resolve("v", frame.schema))
    assert "which Spark cannot order" in str(caught.value)
    assert "leaf of a struct is named with dots" in str(caught.value)


def test_a_calendar_interval_has_no_order(spark: SparkSession) -> None:
    frame = spark.sql("SELECT make_interval(1) AS v")
    with pytest.raises(ColumnError, match="of type interval"):
        key_of(resolve("v", frame.schema))


def test_text_without_a_collation_of_bytes_is_clustered_by_its_bytes(spark: SparkSession) -> None:
    frame = spark.sql("SELECT cast(v AS string COLLATE UTF8_LCASE) AS v FROM VALUES ('b'), ('A'), ('a') AS t(v)")
    key = key_of(resolve("v", frame.schema))
    assert key.carrier == "binary"
    assert [row[0] for row in frame.selectExpr(f"hex({key.expression}) AS h").orderBy("h").collect()] == [
        "41",
        "61",
        "62",
    ]


def test_a_struct_leaf_is_keyed_by_itself(spark: SparkSession) -> None:
    frame = spark.sql("SELECT named_struct('in ner', named_struct('x.y', 5)) AS `out``er` UNION ALL SELECT NULL")
    key = key_of(resolve("`out``er`.`in ner`.`x.y`", frame.schema))
    assert {row[0] for row in frame.selectExpr(key.expression).collect()} == {5, None}


def test_long_text_travels_cut(spark: SparkSession) -> None:
    frame = spark.sql("SELECT repeat('ä', 1000) AS s, cast(repeat('b', 1000) AS binary) AS b")
    for name in ("s", "b"):
        sampled = frame.selectExpr(key_of(resolve(name, frame.schema)).sampled).collect()[0][0]
        assert len(sampled) == SAMPLE_BYTES


@pytest.mark.skipif(not hasattr(t, "TimeType"), reason="of Spark 4.1")
def test_times_of_day_keep_their_order(spark: SparkSession) -> None:
    values = ["'00:00:00'", "'00:00:00.000001'", "'09:30:00'", "'23:59:59.999999'", "NULL"]
    with settings(spark, {"spark.sql.timeType.enabled": "true"}):
        frame = spark.sql(cast_values("time(6)", values))
        key, bits = key_of(resolve("v", frame.schema)), bits_of(resolve("v", frame.schema))
        found = (
            frame.selectExpr(f"{key.expression} AS k", f"shiftleft(1L, 63) ^ {bits} AS b", "v").orderBy("v").collect()
        )
    assert [row["v"] is None for row in found] == [True, False, False, False, False]
    assert found[0]["k"] is None
    for one, other in itertools.pairwise(found[1:]):
        assert one["k"] < other["k"]
        assert one["b"] <= other["b"], "bits are of the first eight characters"
    assert found[2]["b"] < found[3]["b"] < found[4]["b"]
