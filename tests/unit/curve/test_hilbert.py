from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.curve.hilbert import hilbert_digits, step_table
from dbt_zorder.curve.morton import digits, pack_bytes, pack_long
from dbt_zorder.engine.spark.hilbert import append_sql, digit_sql, fold_sql, step_sql
from dbt_zorder.engine.spark.morton import bytes_sql, words_sql
from tests.support import settings
from tests.unit.curve.reference import hilbert_index, hilbert_point, interleave

SMALL = [(1, 6), (2, 1), (2, 5), (3, 1), (3, 3), (4, 1), (4, 3), (5, 2), (6, 2), (7, 1), (8, 1)]


@pytest.mark.parametrize(("columns", "bits"), SMALL)
def test_the_curve_visits_every_point_once_in_steps_of_one(columns: int, bits: int) -> None:
    points = [hilbert_point(index, bits, columns) for index in range(1 << bits * columns)]
    assert len({tuple(point) for point in points}) == len(points)
    steps = [sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p, q in itertools.pairwise(points)]
    assert set(steps) == {1}
    assert [hilbert_index(point, bits) for point in points] == list(range(len(points)))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
def test_an_index_gives_its_point_back(values: list[int]) -> None:
    assert hilbert_point(hilbert_index(values, 64), 64, len(values)) == values


@given(st.integers(2, 8), st.integers(0, 2**32 - 2))
def test_neighbours_on_the_curve_are_neighbours_in_space(columns: int, index: int) -> None:
    here, there = (hilbert_point(place, 16, columns) for place in (index, index + 1))
    assert sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1


def test_in_two_dimensions_it_is_the_curve_that_everybody_draws() -> None:
    drawn = [hilbert_point(index, 1, 2) for index in range(4)]
    assert drawn in ([[0, 0], [0, 1], [1, 1], [1, 0]], [[0, 0], [1, 0], [1, 1], [0, 1]])


@pytest.mark.parametrize("columns", range(1, 9))
def test_a_table_has_an_entry_a_state_and_part(columns: int) -> None:
    assert len(step_table(columns)) == columns << columns


@pytest.mark.parametrize(("columns", "bits"), [(1, 63), (2, 31), (3, 21), (5, 12), (7, 9), (8, 7)])
def test_many_indices_at_once_are_the_same_in_one_bigint(columns: int, bits: int) -> None:
    points = np.random.default_rng(0).integers(0, 1 << bits, (50, columns), dtype=np.uint64)
    found = pack_long(hilbert_digits(digits(points, bits), columns), columns)
    assert found.tolist() == [hilbert_index(point, bits) for point in points.tolist()]


@pytest.mark.parametrize("columns", range(1, 9))
def test_many_indices_at_once_are_the_same_in_bytes(columns: int) -> None:
    points = np.random.default_rng(0).integers(0, 1 << 64, (50, columns), dtype=np.uint64)
    found = pack_bytes(hilbert_digits(digits(points, 64), columns), columns)
    assert [int.from_bytes(row.tobytes(), "big") for row in found] == [hilbert_index(p, 64) for p in points.tolist()]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(("columns", "bits"), [(1, 5), (2, 10), (3, 7), (4, 10), (5, 3), (6, 10), (7, 9), (8, 7)])
def test_spark_walks_alike_in_one_bigint(spark: SparkSession, ansi: str, columns: int, bits: int) -> None:
    chance = random.Random(columns)
    points = [[chance.getrandbits(bits) for _ in range(columns)] for _ in range(30)]
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        steps = spark.createDataFrame([(interleave(p, bits),) for p in points], "m bigint").coalesce(1)
        steps = steps.selectExpr("m", "0 AS z", "0L AS h")
        for level in reversed(range(bits)):
            state = step_sql("z", digit_sql("m", columns, level), columns)
            steps = steps.selectExpr("m", f"{append_sql('h', 'z', columns)} AS h", f"{state} AS z")
        found = [row[0] for row in steps.selectExpr(append_sql("h", "z", columns)).collect()]
    assert found == [hilbert_index(point, bits) for point in points]


@pytest.mark.parametrize("columns", range(1, 9))
@pytest.mark.parametrize("bits", [8, 24])
def test_spark_walks_alike_in_bytes(spark: SparkSession, columns: int, bits: int) -> None:
    chance = random.Random(columns)
    top = [(1 << bits) - 1] * columns
    points = [[0] * columns, top, *([chance.getrandbits(bits) for _ in range(columns)] for _ in range(20))]
    names = [f"v{column}" for column in range(columns)]
    steps = spark.createDataFrame(points, ", ".join(f"{name} bigint" for name in names)).coalesce(1)
    carried, words = "0", []
    for number, word in enumerate(words_sql(names, bits)):
        steps = steps.selectExpr("*", f"{fold_sql(word, carried, columns)} AS f{number}")
        carried = f"f{number}.z"
        words.append(append_sql(f"f{number}.h", carried, columns))
    found = [row[0] for row in steps.selectExpr(bytes_sql(words, columns)).collect()]
    assert [int.from_bytes(key, "big") for key in found] == [hilbert_index(point, bits) for point in points]
