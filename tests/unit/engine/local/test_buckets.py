from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.engine.local.buckets import Buckets, in_buckets

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


@given(
    ends=st.lists(INTEGERS, min_size=1, max_size=4),
    crowds=st.lists(st.tuples(INTEGERS, st.lists(st.integers(0, 1 << 20), min_size=1, max_size=40)), max_size=4),
)
def test_crowded_cuts_are_found_as_well(ends: list[int], crowds: list[tuple[int, list[int]]]) -> None:
    """Stretches of many cuts in a range so wide that all of them are in one bucket, or two."""
    cuts = [*ends, *(min(least + by, 2**63 - 1) for least, steps in crowds for by in steps)]
    ordered = np.sort(np.asarray(cuts, dtype=np.int64))
    beside = [value + by for value in ordered.tolist() for by in (-1, 0, 1) if -(2**63) <= value + by < 2**63]
    given_values = np.asarray(beside, dtype=np.int64)
    found = Buckets.of(ordered).at_or_below(given_values)
    assert np.array_equal(found, np.searchsorted(ordered, given_values, side="right"))


def test_cuts_are_searched_where_buckets_tell_nothing() -> None:
    even = np.arange(0, 10**6, 1000)
    assert isinstance(in_buckets(even), Buckets)
    assert not isinstance(in_buckets(even[:10]), Buckets), "few"
    skewed = np.asarray([*range(1000), 10**12])
    assert Buckets.of(skewed).alone == 1
    assert not isinstance(in_buckets(skewed), Buckets), "all but one in one bucket"
    twice = np.repeat(even[:20], 5)
    assert not isinstance(in_buckets(twice), Buckets), "of equal ones none is alone"
    with_nan = np.append(twice, np.iinfo(np.int64).max)
    assert Buckets.of(with_nan).alone == 1
    assert not isinstance(in_buckets(with_nan), Buckets)
    assert not isinstance(in_buckets(np.arange(200_000)), Buckets), "very many"
