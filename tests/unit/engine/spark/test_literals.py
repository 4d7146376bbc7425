from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.engine.spark.literals import key_array, key_literal
from dbt_zorder.layout.keys import shortest_separator
from tests.support import settings

STRANGE = ["", "a", "it's", "\\", '"', "a,b", "[1]", "null", "${x}", "\n\t\x00", "漢字", "🎈", " lead", "é", "NaN", "%"]

ARRAYS: list[tuple[str, list[Any]]] = [
    ("bigint", [None, 0, -1, 2**63 - 1, -(2**63), None]),
    ("bigint", [None]),
    ("double", [0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), 1e16, 123456789.123456789]),
    ("decimal(9,2)", [Decimal("-1234567.89"), None, Decimal("0.00"), Decimal("1E+5")]),
    ("decimal(38,18)", [Decimal("12345678901234567890.123456789012345678"), Decimal("1E-18"), Decimal("-0E-18")]),
    ("decimal(38,0)", [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    ("string", [text.encode() for text in STRANGE]),
    ("string", [None, b"x"]),
    ("binary", [b"", b"\x00", bytes(range(256)), None]),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
@pytest.mark.parametrize(("carrier", "values"), ARRAYS)
def test_keys_come_back_from_spark(spark: SparkSession, ansi: str, zone: str, carrier: str, values: list[Any]) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}):
        row = spark.sql(f"SELECT {key_array(values, carrier)} AS a").collect()[0]
        each = [key_literal(value, carrier) for value in values if value is not None]
        alike = (
            spark.sql(f"SELECT array_except(array({', '.join(each)}), {key_array(values, carrier)}) AS a")
            if each
            else None
        )
        assert alike is None or alike.collect() == [([],)]
    got = [value.encode() if isinstance(value, str) else value for value in row["a"]]
    got = [bytes(value) if isinstance(value, bytearray) else value for value in got]
    assert got == values


def test_nan_is_a_key(spark: SparkSession) -> None:
    assert spark.sql(f"SELECT isnan(get({key_array([float('nan')], 'double')}, 0))").collect()[0][0] is True


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_timestamps_without_a_zone_do_not_depend_on_the_sessions(spark: SparkSession, ansi: str, zone: str) -> None:
    # year 1, an hour that New York skips in spring, one it has twice, year 9999
    texts = ["0001-01-01 00:00:00", "2024-03-10 02:30:00", "2024-11-03 01:30:00.123456", "9999-12-31 23:59:59.999999"]
    numbers = [int(np.datetime64(text, "us").astype(np.int64)) for text in texts]
    wanted = ", ".join(f"TIMESTAMP_NTZ'{text}'" for text in texts)
    with settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}):
        assert spark.sql(f"SELECT {key_array(numbers, 'timestamp_ntz')} = array({wanted})").collect()[0][0] is True


@pytest.mark.parametrize("escaped", ["true", "false"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_text_comes_back_by_its_bytes_however_literals_are_read(spark: SparkSession, escaped: str, ansi: str) -> None:
    values = [b"\xe9", b"\xff\xfe\x00", b'it\'s \\ "${x}"\n', b"", *(text.encode() for text in STRANGE)]
    with settings(spark, {"spark.sql.parser.escapedStringLiterals": escaped, "spark.sql.ansi.enabled": ansi}):
        array = key_array([*values, None], "string")
        found = spark.sql(f"SELECT transform({array}, x -> hex(x)) AS a, typeof({array}) AS t").collect()[0]
        right = spark.sql(f"SELECT CAST(X'E9AB' AS STRING) >= get({array}, 0), 'z' >= get({array}, 0)").collect()[0]
    assert found["a"] == [*(value.hex().upper() for value in values), None]
    assert found["t"] == "array<string>"
    assert tuple(right) == (True, False)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_timestamps_before_the_common_era_come_back(spark: SparkSession, ansi: str) -> None:
    days = [-720_000, -719_529, -800_000, -1_080_000, -1_084_000, -1_100_000, -5_000_000]  # years 0 to -11720
    micros = [day * 86_400_000_000 for day in days]
    wanted = ", ".join(f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + INTERVAL '{day}' DAY" for day in days)
    literals = ", ".join(key_literal(value, "timestamp_ntz") for value in micros)
    with settings(spark, {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": ansi}):
        found = spark.sql(
            f"SELECT {key_array(micros, 'timestamp_ntz')} = array({wanted}), array({literals}) = array({wanted})"
        ).collect()[0]
    assert tuple(found) == (True, True)


def test_the_least_timestamp_of_all_is_a_cut(spark: SparkSession) -> None:
    cuts = key_array([-(2**63), -(2**63) + 1], "timestamp_ntz")
    least = "TIMESTAMP_NTZ'0001-01-01 00:00:00'"
    assert tuple(spark.sql(f"SELECT {least} >= get({cuts}, 0), {least} >= get({cuts}, 1)").collect()[0]) == (True, True)


@pytest.mark.parametrize("micros", [-(2**63) + 2**40, 2**63 - 1, 253402300800000000, -62135596800000001])
def test_timestamps_beyond_four_digit_years_come_back(spark: SparkSession, micros: int) -> None:
    key = f"get({key_array([micros], 'timestamp_ntz')}, 0)"
    sql = f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {key})"
    # timestampdiff goes by way of the session's zone, and an offset would overflow at both ends
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        assert spark.sql(f"SELECT {sql}").collect()[0][0] == micros


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_array_is_one_constant_in_the_plan(spark: SparkSession, ansi: str) -> None:
    lookups = [
        f"get({key_array(values, carrier)}, cast(id as int)) AS v{n}" for n, (carrier, values) in enumerate(ARRAYS)
    ]
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        plan = spark.sql(f"EXPLAIN SELECT {', '.join(lookups)} FROM range(3)").collect()[0][0]
    assert plan.count("[cast(id") == len(ARRAYS)
    assert not any(function in plan for function in ("split(", "from_json", "try_cast"))


pairs = st.tuples(st.binary(max_size=12), st.binary(max_size=12)).filter(lambda pair: pair[0] != pair[1]).map(sorted)
texts = st.tuples(st.text(max_size=8), st.text(max_size=8)).filter(lambda pair: pair[0] != pair[1])


@given(pairs)
def test_a_separator_parts_its_neighbours_and_none_is_shorter(pair: list[bytes]) -> None:
    below, above = pair
    cut = shortest_separator(below, above, text=False)
    assert below < cut <= above
    assert above.startswith(cut)
    assert not any(below < above[:length] for length in range(len(cut)))


@given(texts)
def test_a_separator_of_text_is_text(pair: tuple[str, str]) -> None:
    try:
        below, above = sorted(text.encode() for text in pair)
    except UnicodeEncodeError:
        return
    cut = shortest_separator(below, above, text=True)
    assert below < cut <= above
    assert cut.decode() == above.decode()[: len(cut.decode())]


def test_separators_keep_the_order_of_a_dictionary() -> None:
    words = sorted(text.encode() for text in STRANGE)
    cuts = [shortest_separator(below, above, text=True) for below, above in itertools.pairwise(words)]
    assert cuts == sorted(cuts)
