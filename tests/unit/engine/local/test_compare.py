from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.engine.local.compare import as_cuts, at_or_below, cuts_of, order_by, radix_order


@given(st.lists(st.integers(0, (1 << 63) - 1) | st.integers(0, 70_000), max_size=50))
def test_numbers_are_sorted_as_numpy_compares_them(numbers: list[int]) -> None:
    given_numbers = np.asarray(numbers, dtype=np.int64)
    assert np.array_equal(radix_order(given_numbers), np.argsort(given_numbers, kind="stable"))


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


@pytest.mark.parametrize(
    ("carrier", "kind", "values"),
    [
        ("double", pa.float64(), [*(number / 7 for number in range(-40, 40)), -0.0, math.inf, -math.inf, math.nan]),
        ("bigint", pa.int64(), [*range(-40, 40), 2**63 - 1, -(2**63)]),
        ("timestamp_ntz", pa.timestamp("us"), list(range(0, 10**12, 10**10))),
        ("decimal(18,3)", pa.decimal128(18, 3), [Decimal(number) / 8 for number in range(-400, 400, 9)]),
        ("decimal(19,3)", pa.decimal128(19, 3), [Decimal(number) / 8 for number in range(-400, 400, 9)]),
        ("string", pa.binary(), [b"%03d" % number for number in range(0, 300, 3)]),
    ],
    ids=["double", "bigint", "timestamp_ntz", "decimal 18", "decimal 19", "string"],
)
@pytest.mark.parametrize("most", [3, 1000])
def test_many_cuts_of_any_type_part_rows_wherever_they_lie_in_an_array(
    carrier: str, kind: pa.DataType, values: list[Any], most: int
) -> None:
    """In slices, among NULL, and of no rows."""
    given_cuts = [*values[: most - 1], values[-1]] if most < len(values) else values
    cuts, places = cuts_of(given_cuts, carrier)
    ordered = sorted(given_cuts, key=lambda value: (value != value, value))
    assert [places[repr(value)] for value in ordered] == sorted(places.values())
    keys = pa.array([None, *values, None, *reversed(values)], kind)
    for some in (keys, keys[3:], keys[5:9], keys[:0], keys[:1]):
        wanted = [
            0 if key is None else sum(not _is_above(cut, key) for cut in given_cuts)
            for key in (some.cast(pa.int64()) if carrier == "timestamp_ntz" else some).to_pylist()
        ]
        assert at_or_below(some, cuts).tolist() == wanted


def _is_above(one: Any, other: Any) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return not math.isnan(other)
    return bool(one > other) and not (isinstance(other, float) and math.isnan(other))
