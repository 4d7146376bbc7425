from __future__ import annotations

import math
import random
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.curve.bits import float_integers, ordered_bits
from dbt_zorder.layout.bit_keys import bits_sql
from tests.support import settings
from tests.unit.curve.reference import encode

CHANCE = random.Random(7)
DOUBLES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308, 1.0]
DOUBLES += [math.inf, -math.inf, math.nan, 2.0**1023, 0.9999999999999999, 1.0000000000000002, -(2.0**52)]
DOUBLES += [struct.unpack(">d", CHANCE.randbytes(8))[0] for _ in range(400)]
DOUBLES += [math.ldexp(factor, power) for power in range(-1074, 1023, 13) for factor in (1.0, 1 - 2**-53, 1 + 2**-52)]
FLOATS = [0.0, -0.0, 2.0**-149, 2.0**-126, -(2.0**-126) + 2.0**-149, (2 - 2**-23) * 2.0**127, math.inf, math.nan]
FLOATS += [struct.unpack(">f", CHANCE.randbytes(4))[0] for _ in range(400)]
TIMES = [
    datetime(1, 1, 2),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 3, 10, 2, 30),
    datetime(9999, 12, 30),
]
TEXTS = ["", "a", "aa", "é", "漢字漢字", "🎈", "customer-1", "\x00", "\x00" * 7 + "\x01", "\x7f" * 9]

KINDS: list[tuple[str, str, list[Any]]] = [
    ("boolean", "boolean", [False, True]),
    ("tinyint", "tinyint", [-128, -1, 0, 127]),
    ("smallint", "smallint", [-(2**15), 0, 2**15 - 1]),
    ("int", "int", [-(2**31), -1, 0, 1, 2**31 - 1]),
    ("bigint", "bigint", [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 1]),
    ("float", "float", FLOATS),
    ("double", "double", DOUBLES),
    ("decimal(9,2)", "decimal(9,2)", [Decimal("-9999999.99"), Decimal("0.01"), Decimal(0), Decimal("9999999.99")]),
    ("decimal(18,18)", "decimal(18,18)", [Decimal(f"0.{'9' * 18}"), Decimal(f"-0.{'9' * 18}"), Decimal("1E-18")]),
    ("decimal(18,0)", "decimal(18,0)", [Decimal(10**18 - 1), Decimal(1 - 10**18)]),
    ("decimal(20,4)", "decimal(20,4)", [Decimal("-9999999999999999.9999"), Decimal("0.0100"), Decimal("1234.5600")]),
    ("decimal(38,0)", "decimal(38,0)", [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(10**30), Decimal(7)]),
    ("decimal(38,38)", "decimal(38,38)", [Decimal(f"0.{'9' * 38}"), Decimal("-1E-38"), Decimal("0.123")]),
    ("date", "date", [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)]),
    ("timestamp", "timestamp", [time.replace(tzinfo=timezone.utc) for time in TIMES]),
    ("timestamp_ntz", "timestamp_ntz", TIMES),
    ("micros", "interval day to second", [timedelta(days=-100, microseconds=1), timedelta(0), timedelta(hours=49)]),
    ("string", "string", TEXTS),
    ("binary", "binary", [b"", b"\x00", b"\x7f", b"\x80", b"\xff" * 8, b"\xff" * 9]),
]


@pytest.mark.parametrize(("kind", "values"), [("float", FLOATS), ("double", DOUBLES)])
def test_many_numbers_at_once_are_encoded_alike(kind: str, values: list[float]) -> None:
    given = [*values, *(-value for value in values)]
    found = ordered_bits(float_integers(np.asarray(given), kind), kind)
    assert found.view(np.uint64).tolist() == [encode(value, kind) for value in given]


@pytest.mark.parametrize(("kind", "bits"), [("boolean", 1), ("tinyint", 8), ("int", 32), ("date", 32), ("bigint", 64)])
def test_many_whole_numbers_at_once_are_encoded_alike(kind: str, bits: int) -> None:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    numbers = sorted(one for one in {least, least + 1, least // 2, -1, 0, most // 2, most} if least <= one <= most)
    found = ordered_bits(np.asarray(numbers), kind).view(np.uint64).tolist()
    assert found == sorted(found)
    if kind not in ("boolean", "date"):
        assert found == [encode(number, kind) for number in numbers]


@pytest.mark.parametrize(("zone", "ansi"), [("UTC", "true"), ("America/New_York", "false")])
@pytest.mark.parametrize(("kind", "ddl", "values"), KINDS, ids=[kind for kind, _, _ in KINDS])
def test_spark_encodes_as_the_reference_does(
    spark: SparkSession, zone: str, ansi: str, kind: str, ddl: str, values: list[Any]
) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        frame = spark.createDataFrame([(value,) for value in [None, *values]], f"v {ddl}").coalesce(1)
        found = [row[0] & (1 << 64) - 1 for row in frame.selectExpr(bits_sql("v", kind)).collect()]
    assert found == [encode(value, kind) for value in [None, *values]]
    assert found[0] == 0
    assert all(found[1:])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_ends_of_intervals_and_times_do_not_overflow(spark: SparkSession, ansi: str) -> None:
    lowest, highest = "make_dt_interval(-106751991, -4, 0, -54.775808)", "make_dt_interval(106751991, 4, 0, 54.775807)"
    time = f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + {lowest})"
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        row = spark.sql(
            f"SELECT {bits_sql(lowest, 'micros')}, {bits_sql(highest, 'micros')}, {bits_sql(time, 'timestamp_ntz')}, "
            f"{bits_sql('make_ym_interval(-178956970, -8)', 'months')}"
        ).collect()[0]
    assert [value & (1 << 64) - 1 for value in row] == [1, (1 << 64) - 1, 1, 1]


@given(st.floats(), st.floats())
def test_numbers_keep_their_order(one: float, other: float) -> None:
    # as Spark orders: both zeros alike, NaN above all
    first, second = ((math.inf, 1) if math.isnan(v) else (v, 0) for v in (one, other))
    assert (encode(one, "double") < encode(other, "double")) == (first < second)


@given(st.floats(width=32), st.floats(width=32))
def test_floats_keep_their_order(one: float, other: float) -> None:
    first, second = ((math.inf, 1) if math.isnan(v) else (v, 0) for v in (one, other))
    assert (encode(one, "float") < encode(other, "float")) == (first < second)


@pytest.mark.parametrize(("kind", "bits"), [("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 63)])
@given(data=st.data())
def test_integers_keep_their_order(kind: str, bits: int, data: st.DataObject) -> None:
    integers = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    one, other = data.draw(integers), data.draw(integers)
    assert (encode(one, kind) < encode(other, kind)) == (one < other)


@given(st.text(), st.text())
def test_text_is_never_swapped(one: str, other: str) -> None:
    try:
        below, above = sorted((one, other), key=str.encode)
    except UnicodeEncodeError:
        return
    assert encode(below, "string") <= encode(above, "string")


AT_LENGTH: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(timezone.utc)),
    "timestamp_ntz": st.datetimes(),
    "micros": st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)),
    "months": st.integers(-(2**31), 2**31 - 1),
    "decimal(9,2)": st.decimals(-9999999, 9999999, places=2),
    "decimal(18,6)": st.decimals(-(10**12) + 1, 10**12 - 1, places=6),
}


@pytest.mark.parametrize("kind", AT_LENGTH)
@given(data=st.data())
def test_values_that_64_bits_hold_keep_their_order_and_differ(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(AT_LENGTH[kind]), data.draw(AT_LENGTH[kind])
    assert (encode(one, kind) < encode(other, kind)) == (one < other)
    assert encode(one, kind) > encode(None, kind), "NULL has a place of its own"


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_bytes_are_never_swapped(one: bytes, other: bytes) -> None:
    if one < other:
        assert encode(one, "binary") <= encode(other, "binary")
    if one[:8] < other[:8] and b"\0" not in one + other:
        assert encode(one, "binary") < encode(other, "binary")


@given(*[st.decimals(-(10**20) + 1, 10**20 - 1, places=18)] * 2)
def test_long_decimals_are_never_swapped(one: Decimal, other: Decimal) -> None:
    below, above = sorted((one, other))
    assert encode(below, "decimal(38,18)") <= encode(above, "decimal(38,18)")


@pytest.mark.parametrize(("kind", "middle"), [("boolean", True), ("int", 0), ("date", date(1970, 1, 1)), ("bigint", 0)])
def test_every_types_highest_bit_is_the_64th(kind: str, middle: Any) -> None:
    assert encode(middle, kind) >> 1 == 1 << 62


def test_the_two_lowest_of_64_bits_share_a_place() -> None:
    assert encode(-(2**63), "bigint") == encode(-(2**63) + 1, "bigint") == 1
