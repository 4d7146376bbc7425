"""Bounds as Iceberg keeps them (its specification, Appendix D); tests/formats compare all types with Spark."""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyspark.sql import types as t

from dbt_zorder.stats.iceberg.values import _value


def decoded(raw: bytes, kind: t.DataType) -> Any:
    return _value(raw.hex(), kind)


@given(some.integers(-(2**31), 2**31 - 1))
def test_whole_numbers_are_told_by_either_width(number: int) -> None:
    for width, kind in ((4, t.IntegerType()), (8, t.LongType()), (4, t.LongType())):
        assert decoded(number.to_bytes(width, "little", signed=True), kind) == number


@given(some.integers(-(10**38) + 1, 10**38 - 1), some.integers(0, 38))
def test_decimals_are_exact(unscaled: int, scale: int) -> None:
    raw = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    sign, digits, exponent = decoded(raw, t.DecimalType(38, scale)).as_tuple()
    assert (int("".join(map(str, digits))) * (-1 if sign else 1), exponent) == (unscaled, -scale)


@given(some.floats(allow_nan=False), some.dates(), some.datetimes(), some.text())
def test_other_values_are_told(number: float, day: date, moment: datetime, text: str) -> None:
    assert decoded(struct.pack("<d", number), t.DoubleType()) == number
    days = (day - date(1970, 1, 1)).days
    assert decoded(days.to_bytes(4, "little", signed=True), t.DateType()) == day
    micros = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    raw = micros.to_bytes(8, "little", signed=True)
    assert decoded(raw, t.TimestampNTZType()) == moment
    assert decoded(raw, t.TimestampType()) == moment.replace(tzinfo=timezone.utc)
    assert decoded(text.encode(), t.StringType()) == text


def test_there_may_be_none() -> None:
    assert _value(None, t.LongType()) is None
    assert decoded(b"\0", t.BooleanType()) is False
    assert decoded(struct.pack("<f", 0.5), t.DoubleType()) == 0.5
    assert decoded((250).to_bytes(2, "big"), t.DecimalType(5, 2)) == Decimal("2.50")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"\xff", t.StringType()), (b"\0" * 3, t.DoubleType()), (b"\xff" * 7 + b"\x7f", t.TimestampType())],
)
def test_what_is_no_value_is_an_error(raw: bytes, kind: t.DataType) -> None:
    with pytest.raises((ValueError, ArithmeticError, struct.error)):
        decoded(raw, kind)
