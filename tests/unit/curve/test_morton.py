from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.curve.morton import digits, interleave_bytes, pack_bytes, pack_long, spread
from dbt_zorder.engine.spark.morton import bytes_sql, words_sql
from tests.support import settings
from tests.unit.curve.reference import deinterleave, interleave

values_64 = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8)


def test_the_example_of_the_rfc() -> None:
    # Hudi RFC-28 begins with Y
    assert interleave([0b11010110, 0b01100001], 8) == 0b1011011000101001


@pytest.mark.parametrize("columns", range(1, 9))
def test_every_key_is_that_of_one_point(columns: int) -> None:
    bits = max(1, 8 // columns)
    points = list(itertools.product(range(1 << bits), repeat=columns))
    assert sorted(interleave(point, bits) for point in points) == list(range(len(points)))


@given(values_64)
def test_a_key_gives_its_point_back(values: list[int]) -> None:
    assert deinterleave(interleave(values, 64), 64, len(values)) == values


@given(values_64)
def test_a_key_is_the_or_of_its_columns_parts(values: list[int]) -> None:
    key = 0
    for column, value in enumerate(values):
        key |= spread(value, column, len(values))
    assert key == interleave(values, 64)


@given(st.lists(st.integers(0, 2**20 - 1), min_size=3, max_size=3), st.integers(0, 2), st.integers(1, 2**20 - 1))
def test_a_greater_value_in_one_column_is_a_greater_key(values: list[int], column: int, more: int) -> None:
    greater = [value + more if number == column else value for number, value in enumerate(values)]
    assert interleave(greater, 21) > interleave(values, 21)


@pytest.mark.parametrize(("columns", "bits"), [(1, 63), (2, 31), (3, 21), (7, 9), (8, 7)])
def test_many_keys_at_once_are_the_same_in_one_bigint(columns: int, bits: int) -> None:
    points = np.random.default_rng(0).integers(0, 1 << bits, (50, columns), dtype=np.uint64)
    assert pack_long(digits(points, bits), columns).tolist() == [interleave(p, bits) for p in points.tolist()]


@pytest.mark.parametrize("columns", range(1, 9))
@pytest.mark.parametrize("bits", [8, 24, 64])
def test_many_keys_at_once_are_the_same_in_bytes(columns: int, bits: int) -> None:
    points = np.random.default_rng(0).integers(0, 1 << bits, (50, columns), dtype=np.uint64, endpoint=False)
    packed = pack_bytes(digits(points, bits), columns)
    assert packed.shape == (50, bits * columns // 8)
    assert [int.from_bytes(row.tobytes(), "big") for row in packed] == [interleave(p, bits) for p in points.tolist()]


@pytest.mark.parametrize("columns", range(1, 9))
def test_a_look_up_a_byte_interleaves_as_a_step_a_bit_does(columns: int) -> None:
    values = np.random.default_rng(columns).integers(0, 2**64, (50, columns), dtype=np.uint64)
    values[0], values[1] = 0, 2**64 - 1
    assert np.array_equal(interleave_bytes(values), pack_bytes(digits(values, 64), columns))
    assert interleave_bytes(values[:0]).shape == (0, 8 * columns)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("bits", [8, 24, 64])
def test_spark_interleaves_alike(spark: SparkSession, ansi: str, bits: int) -> None:
    chance = random.Random(bits)
    points = [[0] * 8, [(1 << bits) - 1] * 8, *([chance.getrandbits(bits) for _ in range(8)] for _ in range(20))]
    names = [f"v{column}" for column in range(8)]
    rows = [[value - (1 << 64) if value >> 63 else value for value in point] for point in points]
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        frame = spark.createDataFrame(rows, ", ".join(f"{name} bigint" for name in names)).coalesce(1)
        keys = [f"{bytes_sql(words_sql(names[:k], bits), k)} AS k{k}" for k in range(1, 9)]
        found = frame.selectExpr(*keys).collect()
    for row, point in zip(found, points, strict=True):
        for columns in range(1, 9):
            key = row[f"k{columns}"]
            assert len(key) == bits * columns // 8
            assert int.from_bytes(key, "big") == interleave(point[:columns], bits)
