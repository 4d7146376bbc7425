from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.layout.comparing import Buckets, as_cuts, at_or_below, in_order, order_by


@given(st.lists(st.integers(0, (1 << 63) - 1) | st.integers(0, 70_000), max_size=50))
def test_numbers_are_sorted_as_numpy_compares_them(numbers: list[int]) -> None:
    given_numbers = np.asarray(numbers, dtype=np.int64)
    assert np.array_equal(in_order(given_numbers), np.argsort(given_numbers, kind="stable"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2), pa.int64()),
        (st.floats(allow_infinity=True, allow_nan=True) | st.sampled_from([0.0, -0.0, math.nan]), pa.float64()),
        (st.binary(max_size=3), pa.binary()),
        (st.decimals(-1000, 1000, places=2), pa.decimal128(9, 2)),
    ],
    ids=["int64", "double", "binary", "decimal"],
)
@given(data=st.data())
def test_rows_in_order_of_a_key_lie_in_order_of_what_it_is_at_or_above(
    values: st.SearchStrategy[Any], kind: pa.DataType, data: st.DataObject
) -> None:
    keys = pa.array(data.draw(st.lists(values | st.none(), min_size=1, max_size=40)), kind)
    cuts = pa.array(data.draw(st.lists(values, min_size=1, max_size=6)), kind)
    cuts = cuts.take(pa.array(order_by(cuts)))
    order = order_by(keys)
    places = at_or_below(keys, as_cuts(cuts))[order]
    assert (np.diff(places) >= 0).all()
    assert (places[: keys.null_count] == 0).all()
    for key, place in zip(keys.take(pa.array(order)).to_pylist(), places.tolist(), strict=True):
        below = [cut for cut in cuts.to_pylist() if key is not None and not _is_above(cut, key)]
        assert place == len(below)


INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-70_000, 70_000) | st.integers(-3, 3)


@given(
    cuts=st.lists(INTEGERS, min_size=1, max_size=60),
    values=st.lists(INTEGERS, max_size=60),
    steps=st.sampled_from([0, 1, 3, 1000, 2**40]),
)
def test_a_look_up_finds_what_a_search_does(cuts: list[int], values: list[int], steps: int) -> None:
    """Among cuts that lie apart, close together and both; the cuts' own values and those next to them, too."""
    ordered = np.sort(np.asarray(cuts + [min(cuts[0] + steps * n, 2**63 - 1) for n in range(80)], dtype=np.int64))
    beside = [value + by for value in ordered.tolist() for by in (-1, 0, 1) if -(2**63) <= value + by < 2**63]
    given_values = np.asarray(values + beside, dtype=np.int64)
    found = Buckets.of(ordered).at_or_below(given_values)
    assert np.array_equal(found, np.searchsorted(ordered, given_values, side="right"))


def test_cuts_that_crowd_in_few_buckets_are_searched() -> None:
    even = pa.array(range(0, 10**6, 1000), pa.int64())
    assert isinstance(as_cuts(even), Buckets)
    assert isinstance(as_cuts(even[:10]), np.ndarray)
    skewed = pa.array([*range(1000), 10**12], pa.int64())
    assert isinstance(as_cuts(skewed), np.ndarray)


def _is_above(one: Any, other: Any) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return not math.isnan(other)
    return bool(one > other) and not (isinstance(other, float) and math.isnan(other))
