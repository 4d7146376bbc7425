"""The encoding ``bits``: the ordered bits of a value's type, as 64 unsigned bits (Hudi RFC-28, Impala's Z-order).

A value becomes a signed integer n in the order of its type, with the type's own width w. Its encoding is

    NULL -> 0,    else (n + 2^(w-1)) << (64 - w) | 1

Every type's highest bit is then the 64th, and no column dominates. A type of 64 bits has no bit left for the 1.
Therefore the two lowest values of BIGINT, TIMESTAMP, text and binary share one code. Neighbours also share a code where
a type has more than 64 bits. This concerns text and binary beyond 8 bytes, and zero bytes at the end of shorter ones.
It also concerns decimals beyond 18 digits, which are converted by way of a DOUBLE. Two values never swap their order.

The kinds are names of SQL types: boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp,
timestamp_ntz, string, binary. The kinds ``months`` and ``micros`` are the two kinds of intervals.
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
IEEE = {"float": (23, -126), "double": (52, -1022)}
"""Bits of the mantissa, and least exponent of a normal number."""

DIGITS = 18
"""Decimal digits that always fit a BIGINT."""


def ordered_bits(numbers: npt.NDArray[np.int64], kind: str) -> npt.NDArray[np.int64]:
    """Return the 64 ordered bits of many values, as signed integers whose bits are to be read as unsigned.

    Args:
        numbers: integers of the kind's own width, in the order of its type.
        kind: kind of the values, see the module.
    """
    width = width_of_kind(kind)
    if width == 64:
        return np.asarray(np.maximum(numbers, 1 - (1 << 63)) ^ np.int64(-(1 << 63)), dtype=np.int64)
    return (numbers + (1 << width - 1) << 64 - width) | 1


def float_integers(values: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.int64]:
    """Return signed integers in the order of many numbers of the kind ``float`` or ``double``.

    They are the bits of each number's magnitude, with its sign.
    """
    size = np.abs(values)
    bits = size.view(np.int64) if kind == "double" else size.astype(np.float32).view(np.int32).astype(np.int64)
    highest = (1 << _WIDTHS[kind] - 1) - 1
    return np.where(np.isnan(values), highest, np.where(values < 0, -bits, bits))


def width_of_kind(kind: str) -> int:
    """Return the number of bits of a kind's values."""
    if kind.startswith("decimal"):
        precision, _ = decimal_digits(kind)
        return int(10 ** min(precision, DIGITS)).bit_length() + 1
    return _WIDTHS[kind]


def decimal_digits(kind: str) -> tuple[int, int]:
    """Return precision and scale from a SQL type such as ``decimal(9,2)``."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    assert match is not None, kind
    return int(match[1]), int(match[2])


def high_part(kind: str) -> float | None:
    """Return the factor that leaves 18 digits of a longer decimal before the point.

    Return None for a decimal of up to 18 digits.
    """
    precision, scale = decimal_digits(kind)
    return float(f"1e{DIGITS - precision + scale}") if precision > DIGITS else None
