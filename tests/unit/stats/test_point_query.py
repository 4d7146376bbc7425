from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.stats.point_query import point_query_files


def mean(bounds: list[tuple[object, object]], rows: list[int] | None = None) -> float:
    low, high = (pa.array([bound[side] for bound in bounds]) for side in (0, 1))
    return point_query_files(low, high, rows or [1] * len(bounds))


@pytest.mark.parametrize(
    ("bounds", "files"),
    [
        ([(1, 2), (3, 4), (5, 6)], 1.0),  # side by side
        ([(1, 9), (1, 9), (1, 9)], 3.0),  # all over all
        ([(1, 4), (4, 9)], 1.5),  # the value 4 lies in both
        ([(5, 5)], 1.0),
        ([("a", "b"), ("b", "c")], 1.5),
        ([(None, None), (1, 2)], 1.0),  # a file without a value counts nowhere
        ([(1.0, float("nan")), (2.0, 3.0)], 1.5),
    ],
)
def test_files_are_counted_by_their_bounds(bounds: list[tuple[object, object]], files: float) -> None:
    assert mean(bounds) == files


def test_a_file_counts_by_its_rows() -> None:
    assert mean([(1, 9), (3, 4)], [30, 10]) == pytest.approx((30 * 1 + 10 * 2) / 40)


def test_no_bounds_at_all_are_zero_files() -> None:
    empty = pa.array([], pa.int64())
    assert point_query_files(empty, empty, []) == 0.0
    assert point_query_files(pa.nulls(2, pa.int64()), pa.nulls(2, pa.int64()), [1, 1]) == 0.0


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_mean_is_the_count_over_all_bounds(spans: list[tuple[int, int]]) -> None:
    bounds = [(low, low + width) for low, width in spans]
    values = [value for bound in bounds for value in bound]
    counted = sum(sum(low <= value <= high for low, high in bounds) for value in values) / len(values)
    assert math.isclose(mean(list(bounds)), counted)
