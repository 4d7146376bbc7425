from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.engine.local.search import binary_search, map_distinct

NUMBERS = st.decimals(-(10**30), 10**30, places=5)
KIND = pa.decimal128(38, 5)


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.lists(NUMBERS, max_size=30))
def test_long_decimals_are_searched(cuts: list[Decimal], values: list[Decimal]) -> None:
    ordered = sorted(cuts)
    found = binary_search(pa.array([*values, *ordered], KIND), pa.array(ordered, KIND))
    assert found.tolist() == [bisect_right(ordered, value) for value in [*values, *ordered]]


def test_of_equal_values_one_is_asked_for() -> None:
    asked: list[int] = []

    def length(values: pa.Array) -> npt.NDArray[np.int32]:
        asked.append(len(values))
        return np.asarray([len(value or b"") for value in values.to_pylist()], dtype=np.int32)

    repeating = pa.array([b"a", b"bb", None, b"a"] * 100, pa.binary())
    assert map_distinct(repeating, length).tolist() == [1, 2, 0, 1] * 100
    different = pa.array([b"%d" % number for number in range(100)], pa.binary())
    assert map_distinct(different, length).tolist() == [1] * 10 + [2] * 90
    assert asked == [2, 100]
