from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.layout.comparing import as_cuts, at_or_below, in_order, order_by


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


def _is_above(one: Any, other: Any) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return not math.isnan(other)
    return bool(one > other) and not (isinstance(other, float) and math.isnan(other))
