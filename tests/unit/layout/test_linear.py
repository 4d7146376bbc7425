from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.columns import resolve
from dbt_zorder.layout.keys import SAMPLE_BYTES, key_of
from dbt_zorder.layout.linear import order_sql, prefix, tuple_array, tuple_sql
from dbt_zorder.layout.literals import KeyValue
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
