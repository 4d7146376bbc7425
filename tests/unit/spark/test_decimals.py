from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_zorder.spark.decimals import can_compact, pack_decimals, unpack_decimals


@settings(deadline=None)
@given(data=st.data(), precision=st.integers(1, 18), first=st.integers(0, 3))
def test_decimals_come_back(data: st.DataObject, precision: int, first: int) -> None:
    scale = data.draw(st.integers(0, precision))
    most = 10**precision - 1
    numbers = data.draw(st.lists(st.none() | st.integers(-most, most) | st.sampled_from([0, -1, most, -most])))
    kind = pa.decimal128(precision, scale)
    whole = pa.array([None if n is None else Decimal(n).scaleb(-scale) for n in numbers], kind)
    values = whole[first:]
    assert can_compact(kind)
    short = pack_decimals(values)
    assert short.to_pylist() == numbers[first:]
    assert short.type.bit_width == (32 if precision <= 9 else 64)
    for some in (short, short.slice(1)):
        again = unpack_decimals(some, kind)
        again.validate(full=True)
        assert again.equals(values[len(values) - len(some) :])


@pytest.mark.parametrize("kind", [pa.decimal128(19, 2), pa.decimal128(38, 0), pa.int64(), pa.string()])
def test_nothing_else_is_shortened(kind: pa.DataType) -> None:
    assert not can_compact(kind)
