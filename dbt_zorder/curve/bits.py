"""The other encoding of values: a type's own bits in order, as 64 unsigned bits (Hudi RFC-28, Impala's Z-order).

A value becomes a signed integer n of the type's own width w, in the order of the type, and then

    NULL -> 0,    else (n + 2^(w-1)) << (64 - w) | 1

so that every type's highest bit is the 64th and no column dominates. With all 64 bits taken there is no place left for
the 1, and the least value is given to its neighbour: the two lowest values of BIGINT, TIMESTAMP, text and binary share
a place. Neighbours also share one where a type has more than 64 bits: text and binary beyond 8 bytes (and zero bytes at
the end of shorter ones), decimals beyond 18 digits, which go by way of a DOUBLE. No two values are ever swapped.

The kinds are names of SQL types: boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp,
timestamp_ntz, string, binary; ``months`` and ``micros`` are the two kinds of intervals.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

_WIDTHS = {
    "boolean": 1,
    "tinyint": 8,
    "smallint": 16,
    "int": 32,
    "bigint": 64,
    "float": 32,
    "double": 64,
    "date": 32,
    "timestamp": 64,
    "timestamp_ntz": 64,
    "months": 32,
    "micros": 64,
    "string": 64,
    "binary": 64,
}
_IEEE = {"float": (23, -126), "double": (52, -1022)}
"""Bits of the mantissa and least exponent of a normal number."""

_DIGITS = 18
"""Decimal digits that a BIGINT surely holds."""

_EPOCH_SQL = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_SIGN = "shiftleft(1L, 63)"


def ordered_bits(numbers: npt.NDArray[np.int64], kind: str) -> npt.NDArray[np.int64]:
    """Return the 64 bits of many values, to be read as unsigned, by the integers that the kind makes of them.

    Args:
        numbers: those integers, of the type's own width, in its order.
        kind: see the module.
    """
    width = _width(kind)
    if width == 64:
        return np.asarray(np.maximum(numbers, 1 - (1 << 63)) ^ np.int64(-(1 << 63)), dtype=np.int64)
    return (numbers + (1 << width - 1) << 64 - width) | 1


def float_integers(values: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.int64]:
    """Return the integers of many numbers of the kind ``float`` or ``double``: their bits, with their sign."""
    size = np.abs(values)
    bits = size.view(np.int64) if kind == "double" else size.astype(np.float32).view(np.int32).astype(np.int64)
    highest = (1 << _WIDTHS[kind] - 1) - 1
    return np.where(np.isnan(values), highest, np.where(values < 0, -bits, bits))


def bits_sql(sql: str, kind: str) -> str:
    """Return SQL text of the 64 bits of a value as BIGINT, to be read as unsigned; 0 for NULL.

    Args:
        sql: SQL text of a value of the kind's type.
        kind: see the module.
    """
    width = _width(kind)
    number = _integer_sql(sql, kind)
    if width == 64:
        bits = f"({_SIGN} ^ greatest({number}, {1 - (1 << 63)}L))"
    else:
        bits = f"(shiftleft({number} + {1 << width - 1}L, {64 - width}) | 1L)"
    return f"CASE WHEN {sql} IS NULL THEN 0L ELSE {bits} END"


def _width(kind: str) -> int:
    if kind.startswith("decimal"):
        precision, _ = decimal_digits(kind)
        return int(10 ** min(precision, _DIGITS)).bit_length() + 1
    return _WIDTHS[kind]


def decimal_digits(kind: str) -> tuple[int, int]:
    """Return the precision and scale of what SQL has as ``decimal(9,2)``."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    assert match is not None, kind
    return int(match[1]), int(match[2])


def high_part(kind: str) -> float | None:
    """Return what a decimal of more than 18 digits is multiplied by, so that 18 stand before the point; else None."""
    precision, scale = decimal_digits(kind)
    return float(f"1e{_DIGITS - precision + scale}") if precision > _DIGITS else None


def _integer_sql(sql: str, kind: str) -> str:
    if kind == "boolean":
        return f"(CAST({sql} AS BIGINT) - 1L)"
    if kind in _IEEE:
        return _ieee_sql(sql, kind)
    if kind.startswith("decimal"):
        high, (_, scale) = high_part(kind), decimal_digits(kind)
        if high:
            return f"CAST(CAST({sql} AS DOUBLE) * {high!r}D AS BIGINT)"
        return f"CAST({sql} * CAST('{10**scale}' AS DECIMAL({scale + 1}, 0)) AS BIGINT)"
    if kind == "date":
        return f"CAST(unix_date({sql}) AS BIGINT)"
    if kind == "timestamp":
        return f"unix_micros({sql})"
    if kind == "timestamp_ntz":
        return _micros_sql(f"({sql} - {_EPOCH_SQL})")
    if kind == "micros":
        return _micros_sql(f"CAST({sql} AS INTERVAL DAY TO SECOND)")
    if kind == "months":
        return f"CAST(CAST({sql} AS INTERVAL MONTH) AS BIGINT)"
    if kind in ("string", "binary"):
        start = f"rpad(hex(substr(CAST({sql} AS BINARY), 1, 8)), 16, '0')"
        return f"({_SIGN} ^ CAST(conv({start}, 16, -10) AS BIGINT))"
    return f"CAST({sql} AS BIGINT)"


def _micros_sql(interval: str) -> str:
    """Return SQL text of an interval's microseconds; its parts are of one sign, so that nothing overflows."""
    # a timestamp without zone has no function for this that keeps off the session's zone
    seconds = f"CAST(extract(SECOND FROM {interval}) * 1000000 AS BIGINT)"
    whole = f"CAST(extract(HOUR FROM {interval}) AS BIGINT) * 3600000000L"
    minutes = f"CAST(extract(MINUTE FROM {interval}) AS BIGINT) * 60000000L"
    return f"(CAST(extract(DAY FROM {interval}) AS BIGINT) * 86400000000L + {whole} + {minutes} + {seconds})"


def _ieee_sql(sql: str, kind: str) -> str:
    """Return SQL text of the bits of a number's size with its sign: one place for both zeros, NaN above all.

    Spark has no function for these bits, but all these steps are exact. The exponent by logarithm may be one off;
    dividing by a power of two does not round, so the quotient tells.
    """
    mantissa, least = _IEEE[kind]
    value = f"CAST({sql} AS DOUBLE)"
    size = f"abs({value})"
    infinity = f"{(2 * (1 - least) + 1) << mantissa}L"
    guess = f"greatest(least(floor(log2({size})), 1023L), -1022L)"
    quotient = f"({size} / pow(2.0D, {guess}))"
    off = f"(CAST({quotient} >= 2.0D AS INT) - CAST({quotient} < 1.0D AS INT))"
    fraction = f"CAST(({quotient} / pow(2.0D, {off}) - 1.0D) * {float(1 << mantissa)!r}D AS BIGINT)"
    normal = f"(shiftleft({guess} + {off} + {1 - least}L, {mantissa}) + {fraction})"
    # 2^1074 is beyond a double: two factors
    half = (mantissa - least) // 2
    factors = f"{2.0**half!r}D * {2.0 ** (mantissa - least - half)!r}D"
    subnormal = f"CAST({size} * {factors} AS BIGINT)"
    magnitude = (
        f"CASE WHEN {size} = double('Infinity') THEN {infinity} WHEN {size} < {2.0**least!r}D THEN {subnormal} "
        f"ELSE {normal} END"
    )
    highest = (1 << _WIDTHS[kind] - 1) - 1
    return f"CASE WHEN isnan({sql}) THEN {highest}L ELSE CAST(sign({value}) AS BIGINT) * ({magnitude}) END"
