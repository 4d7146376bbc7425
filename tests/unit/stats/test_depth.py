from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt_zorder.stats.depth import Depth, depth_of


def depth(
    ranges: Sequence[tuple[Any, Any]], rows: Sequence[int | None] | None = None, nulls: Sequence[int | None] = ()
) -> Depth:
    lows, highs = pa.array([one[0] for one in ranges]), pa.array([one[1] for one in ranges])
    if lows.type == pa.null():
        lows, highs = lows.cast(pa.int64()), highs.cast(pa.int64())
    counts = pa.array(rows or [10] * len(ranges), pa.int64())
    return depth_of(lows, highs, counts, pa.array(nulls or [0] * len(ranges), pa.int64()))


def test_files_that_share_no_value_have_a_depth_of_one() -> None:
    assert depth([(0, 9), (10, 19), (20, 29)]) == Depth(1.0, 1, 0.0, 0)


def test_files_of_one_range_all_overlap() -> None:
    assert depth([(0, 99)] * 5) == Depth(5.0, 5, 4.0, 0)


def test_ranges_that_share_one_value_overlap() -> None:
    assert depth([(0, 10), (10, 20)]) == Depth(1.0625, 2, 1.0, 0)
    assert depth([(0, 1), (1, 2)]) == Depth(1.5, 2, 1.0, 0)


def test_a_nested_range_is_met_though_no_bound_of_it_is_in_it() -> None:
    found = depth([(0, 100), (40, 60), (200, 300)])
    assert found.deepest == 2
    assert found.overlaps == pytest.approx(2 / 3)


def test_a_file_of_nulls_is_read_by_no_query_and_one_without_bounds_by_all() -> None:
    assert depth([(0, 9), (None, None)], nulls=[0, 10]) == Depth(1.0, 1, 0.0, 0)
    assert depth([(0, 9), (None, None)], nulls=[0, 3]) == Depth(2.0, 2, 0.0, 1)
    assert depth([(0, 9), (None, None)], nulls=[0, None]) == Depth(2.0, 2, 0.0, 1)
    assert depth([(0, 9), (None, None)], rows=[10, None], nulls=[0, None]) == Depth(2.0, 2, 0.0, 1)


def test_a_file_with_one_bound_alone_is_without_bounds() -> None:
    assert depth([(0, 9), (5, None)]) == Depth(2.0, 2, 0.0, 1)


@pytest.mark.parametrize("ranges", [[], [(None, None)], [(None, None), (None, None)]])
def test_without_any_bounds_every_file_counts(ranges: list[tuple[None, None]]) -> None:
    assert depth(ranges) == Depth(float(len(ranges)), len(ranges), 0.0, len(ranges))


def test_without_row_counts_files_count_alike() -> None:
    assert depth([(0, 9), (0, 19)], rows=[None, None]) == Depth(1.75, 2, 1.0, 0)


def test_nan_is_the_greatest_value() -> None:
    found = depth([(0.0, float("nan")), (5.0, 6.0), (float("nan"), float("nan"))])
    assert (found.deepest, found.unbounded) == (2, 0)
    assert found.overlaps == pytest.approx(4 / 3)


def test_the_figures_are_those_of_a_count_by_hand() -> None:
    draws = np.random.default_rng(7)
    lows = draws.integers(0, 200, 300)
    highs = lows + draws.integers(0, 60, 300)
    found = depth([*zip(lows.tolist(), highs.tolist(), strict=True)])
    by_value = [int(((lows <= value) & (value <= highs)).sum()) for value in range(300)]
    met = [int(((lows <= high) & (highs >= low)).sum()) - 1 for low, high in zip(lows, highs, strict=True)]
    assert found.deepest == max(by_value)
    assert found.overlaps == pytest.approx(np.mean(met))
    rows = [by_value[value] for low, high in zip(lows, highs, strict=True) for value in _spread(low, high)]
    assert found.mean == pytest.approx(np.mean(rows), rel=0.02)


def _spread(low: int, high: int) -> list[int]:
    """Return many values that are spread evenly between two bounds."""
    return [low + number % (high - low + 1) for number in range(2520)]


def test_files_of_the_whole_range_are_all_read_though_their_bounds_differ() -> None:
    ranges = [(number, 1_000_000 - number) for number in range(40)]
    assert depth(ranges).mean == pytest.approx(40, abs=0.01)


@pytest.mark.parametrize(
    "ranges",
    [
        [(-(1 << 63), (1 << 63) - 1)] * 3,
        [(float("-inf"), float("inf"))] * 3,
        [(b"", b"\xff\xff")] * 3,
        [("order-a", "order-z")] * 3,
        [(Decimal("-1.5"), Decimal("1.5"))] * 3,
        [(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))] * 3,
        [(float("nan"), float("nan"))] * 3,
    ],
)
def test_ranges_of_every_type_are_measured(ranges: list[tuple[Any, Any]]) -> None:
    assert depth(ranges) == Depth(3.0, 3, 2.0, 0)


def test_text_is_measured_behind_its_common_prefix() -> None:
    assert depth([("order-a", "order-m"), ("order-n", "order-z")]) == Depth(1.0, 1, 0.0, 0)
