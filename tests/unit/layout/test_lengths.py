from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.fetched_keys import FetchedKeys, fetch
from dbt_zorder.layout.lengths import length_sql, lengths_of_files, row_lengths
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.spec import LayoutSpec, keys_for

TEXTS = pa.array(["a", None, "", "äö", "abc"])


@pytest.mark.parametrize(
    ("values", "lengths"),
    [
        (TEXTS, [1, 0, 0, 4, 3]),
        (TEXTS.cast(pa.binary()), [1, 0, 0, 4, 3]),
        (TEXTS.slice(2), [0, 4, 3]),
        (pa.array([1, None, 3], pa.int32()), [4, 0, 4]),
        (pa.array([True, None]), [0.125, 0]),
        (pa.array([Decimal("1.5"), None], pa.decimal128(10, 1)), [16, 0]),
        (pa.array([None, None]), [0, 0]),
        (pa.array([["ab", None, "c"], [], None, ["defg"]]), [3, 0, 0, 4]),
        (pa.array([["ab", None, "c"], [], None, ["defg"]]).slice(1), [0, 0, 4]),
        (pa.array([[[1], [2, 3]], [[]]], pa.list_(pa.list_(pa.int64()))), [24, 0]),
        (pa.array([{"x": 1, "t": "ab"}, None, {"x": None, "t": "c"}]), [10, 0, 1]),
        (pa.array([{"x": 1, "t": "ab"}, None, {"x": None, "t": "c"}]).slice(2), [1]),
        (pa.array([[("k", 1), ("kk", 2)], None, []], pa.map_(pa.string(), pa.int64())), [19, 0, 0]),
    ],
)
def test_a_row_is_as_long_as_its_values(values: pa.Array, lengths: list[float]) -> None:
    assert row_lengths(pa.table({"v": values, "w": values})).tolist() == [2 * length for length in lengths]


def test_no_rows_have_no_lengths() -> None:
    assert len(row_lengths(pa.table({"t": pa.array([], pa.string())}))) == 0
    assert row_lengths(pa.table({"t": pa.chunked_array([TEXTS, TEXTS])})).sum() == 16


def test_spark_tells_about_the_same(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT id, IF(id = 1, NULL, 'abcdef') AS `t.t`, named_struct('a', 1D, 'b`', repeat('x', int(id))) AS s, "
        "array(1L, 2L) AS l, map('k', id) AS m, cast(NULL AS array<int>) AS e, cast('abc' AS binary) AS y FROM range(3)"
    )
    found = [row[0] for row in rows.selectExpr(length_sql(rows.schema)).collect()]
    assert found == [8 + 6 + 8 + 0 + 16 + 16 + 0 + 3, 8 + 0 + 8 + 1 + 16 + 16 + 3, 8 + 6 + 8 + 2 + 16 + 16 + 3]
    assert length_sql(spark.range(1).select().schema) == "0L"


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_files_have_the_mean_of_their_rows(spark: SparkSession, curve: str) -> None:
    spec = LayoutSpec(by=["a", "b"], files=4, curve=curve)
    query = spark.sql("SELECT id % 100 AS a, id div 100 AS b FROM range(10000)")
    rows = fetch(query, keys_for(query, spec), 1 << 20, 10_000, [])
    assert isinstance(rows, FetchedKeys)
    layout = plan_layout(query, spec, rows)
    assert lengths_of_files(layout, rows.keys, np.full(10_000, 7.0)).tolist() == [7.0] * 4
    none = lengths_of_files(layout, rows.keys.slice(0, 0), np.zeros(0))
    assert np.isnan(none).tolist() == [True] * 4
    low = lengths_of_files(layout, rows.keys, rows.keys.column(0).to_numpy().astype(float))
    assert low.mean() == pytest.approx(49.5, rel=0.02)
    assert low.min() < 30 < 70 < low.max()


def test_rows_that_a_hash_shares_out_count_for_each_of_their_files(spark: SparkSession) -> None:
    query = spark.sql("SELECT 1 AS a, id FROM range(900)")
    spec = LayoutSpec(by=["a"], files=3)
    rows = fetch(query, keys_for(query, spec), 1 << 20, 900, [])
    assert rows is not None
    layout = plan_layout(query, spec, rows)
    assert lengths_of_files(layout, rows.keys, np.full(900, 5.0)).tolist() == [5.0] * 3
