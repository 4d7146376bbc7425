from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.local.linear import tuples_here, tuples_of
from dbt_zorder.engine.spark.linear import tuple_array, tuple_sql
from dbt_zorder.layout.curve import prefix
from dbt_zorder.layout.keys import SAMPLE_BYTES, KeyValue, key_of, order_sql
from dbt_zorder.spark.columns import resolve
from tests.support import settings

QUOTED = 'it\'s \\ "ü"'


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_tuples_come_back_and_nothing_but_null_is_no_tuple(spark: SparkSession, ansi: str) -> None:
    cuts: list[list[KeyValue | None]] = [
        [None, 5, None],
        [None, None, QUOTED.encode()],
        [None, 2.5, float("inf")],
    ]
    more: list[list[KeyValue | None]] = [[None, b"\xff\x00", None], [None, Decimal("1.50"), None], [None, 1, 0]]
    carriers = ["bigint", "string", "double", "binary", "decimal(9,2)", "timestamp_ntz"]
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        found = spark.sql(f"SELECT {tuple_array([*cuts, *more], carriers)} AS a").collect()[0][0]
        types = spark.sql(f"SELECT typeof({tuple_array([*cuts, *more], carriers)})").collect()[0][0]
    assert found[0] is None
    assert tuple(found[1])[:5] == (5, None, 2.5, b"\xff\x00", Decimal("1.50"))
    assert tuple(found[2])[:4] == (None, QUOTED.encode(), float("inf"), None)
    assert types.count(":") == 6


@pytest.mark.parametrize("codegen", ["true", "false"])
def test_tuples_compare_as_rows_sort(spark: SparkSession, codegen: str) -> None:
    values = (
        "(NULL, 1), (NULL, NULL), (-0.0D, NULL), (0.0D, 2), (double('NaN'), NULL), (double('Infinity'), 3), (1D, 0)"
    )
    with settings(spark, {"spark.sql.codegen.wholeStage": codegen}):
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(a, b)")
        keys = [key_of(resolve(name, frame.schema)) for name in ("a", "b")]
        rows = frame.selectExpr("a", "b", f"{tuple_sql(keys)} AS t", "row_number() OVER (ORDER BY a, b) AS n")
        pairs = rows.alias("x").crossJoin(rows.alias("y"))
        assert pairs.where("(x.t >= y.t) IS NULL OR (x.t >= y.t) <> (x.n >= y.n)").count() == 0


def test_text_is_compared_as_far_as_it_is_sampled(spark: SparkSession) -> None:
    frame = spark.sql("SELECT repeat('x', 300) AS s, unhex(repeat('ff', 300)) AS b, id FROM range(4)")
    keys = [key_of(resolve(name, frame.schema)) for name in ("s", "b", "id")]
    cut = tuple_array([[b"x" * SAMPLE_BYTES], [b"\xff" * SAMPLE_BYTES], [2]], [key.carrier for key in keys])
    right = frame.where(f"{tuple_sql(keys)} >= get({cut}, 0)")
    assert sorted(row["id"] for row in right.collect()) == [2, 3]


def test_a_column_that_its_key_tells_half_of_ends_the_tuple(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, array(1) AS v, 2 AS b, 'x' COLLATE UTF8_LCASE AS c")
    keys = [key_of(resolve(name, frame.schema)) for name in ("a", "v", "b")]
    assert [key.column.name for key in prefix(keys)] == ["a", "v"]
    assert order_sql(keys) == ["`a`", "`v`", "`b`"]
    assert order_sql([key_of(resolve("c", frame.schema))]) == ["CAST(`c` AS BINARY)"]


def test_what_spark_orders_by_its_beginning_alone_goes_by_that(spark: SparkSession) -> None:
    frame = spark.sql("SELECT named_struct('a', 1, 'm', map(1, 2)) AS s, array(named_struct('a', 1, 'b', 2)) AS v")
    keys = [key_of(resolve(name, frame.schema)) for name in ("s", "v")]
    assert order_sql(keys) == [keys[0].expression, "`v`"]
    frame.sort(*map(f.expr, order_sql(keys))).collect()


TUPLES = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    st.none() | st.binary(max_size=3) | st.sampled_from([b"\x00", b"\x00\x00", b"\x00\xff", b"\x01", b"a\x00"]),
    st.none() | st.floats() | st.sampled_from([0.0, -0.0]),
    st.none() | st.decimals(-(10**35), 10**35, places=2) | st.sampled_from([Decimal("0.01"), Decimal("-0.01")]),
    st.none() | st.integers(-5, 5),
)
KINDS = [pa.int64(), pa.binary(), pa.float64(), pa.decimal128(38, 2), pa.timestamp("us")]


@given(st.lists(TUPLES, min_size=1, max_size=30))
def test_bytes_of_tuples_stand_in_the_order_of_rows(rows: list[tuple[object, ...]]) -> None:
    def place(value: Any) -> tuple[Any, ...]:
        return (False,) if value is None else (True, value != value, 0 if value != value else value)

    columns = [pa.array([row[number] for row in rows], kind) for number, kind in enumerate(KINDS)]
    found = tuples_here(columns).to_pylist()
    wanted = [tuple(map(place, row)) for row in rows]
    for one, other in itertools.product(range(len(rows)), repeat=2):
        assert (found[one] < found[other]) == (wanted[one] < wanted[other])
    of_cuts = tuples_of([[row[number] for row in rows] for number in range(len(KINDS))], KINDS)
    empty = [all(value is None for value in row) for row in rows]
    assert of_cuts == [None if none else one for one, none in zip(found, empty, strict=True)]
    assert tuples_here([column[3:] for column in columns]).to_pylist() == found[3:], "also of some rows"
