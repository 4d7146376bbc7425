from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.layout.buckets import Buckets, FloatBuckets, WholeBuckets, in_buckets

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-70_000, 70_000) | st.integers(-3, 3)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0, 5e-324])


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
    found = WholeBuckets.of(ordered).at_or_below(given_values)
    assert np.array_equal(found, np.searchsorted(ordered, given_values, side="right"))


@given(
    cuts=st.lists(FLOATS, min_size=2, max_size=60, unique=True),
    values=st.lists(FLOATS | st.sampled_from([math.inf, -math.inf, math.nan]), max_size=60),
    step=st.sampled_from([0.0, 1e-9, 0.1, 1e300]),
)
def test_a_look_up_of_floats_finds_what_a_search_does(cuts: list[float], values: list[float], step: float) -> None:
    all_cuts = [*cuts, *(cuts[0] + step * n for n in range(80))]
    ordered = np.sort(np.asarray([cut for cut in all_cuts if math.isfinite(cut)]))
    beside = [
        next_
        for cut in ordered.tolist()
        for next_ in (cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf))
    ]
    given_values = np.asarray(values + beside)
    found = FloatBuckets.of(ordered)
    if found is not None:
        # NumPy, too, has NaN above all else
        assert np.array_equal(found.at_or_below(given_values), np.searchsorted(ordered, given_values, side="right"))


def test_floats_whose_range_cannot_be_reckoned_are_searched() -> None:
    for odd in (math.inf, -math.inf, math.nan):
        assert FloatBuckets.of(np.sort(np.asarray([odd, *range(20)], dtype=np.float64))) is None
    assert FloatBuckets.of(np.asarray([-1.7e308, 1.7e308])) is None
    assert FloatBuckets.of(np.zeros(20)) is None
    assert FloatBuckets.of(np.linspace(0, 1e-322, 20)) is None


def test_cuts_that_crowd_in_few_buckets_are_searched() -> None:
    even = np.arange(0, 10**6, 1000)
    assert isinstance(in_buckets(even), WholeBuckets)
    assert isinstance(in_buckets(even / 7), FloatBuckets)
    assert not isinstance(in_buckets(even[:10]), Buckets)
    skewed = np.asarray([*range(1000), 10**12])
    assert not isinstance(in_buckets(skewed), Buckets)
    assert not isinstance(in_buckets(skewed.astype(np.float64)), Buckets)
