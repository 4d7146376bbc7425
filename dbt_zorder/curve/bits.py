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
IEEE = {"float": (23, -126), "double": (52, -1022)}
"""Bits of the mantissa and least exponent of a normal number."""

DIGITS = 18
"""Decimal digits that a BIGINT surely holds."""


def ordered_bits(numbers: npt.NDArray[np.int64], kind: str) -> npt.NDArray[np.int64]:
    """Return the 64 bits of many values, to be read as unsigned, by the integers that the kind makes of them.

    Args:
        numbers: those integers, of the type's own width, in its order.
        kind: see the module.
    """
    width = width_of_kind(kind)
    if width == 64:
        return np.asarray(np.maximum(numbers, 1 - (1 << 63)) ^ np.int64(-(1 << 63)), dtype=np.int64)
    return (numbers + (1 << width - 1) << 64 - width) | 1


def float_integers(values: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.int64]:
    """Return the integers of many numbers of the kind ``float`` or ``double``: their bits, with their sign."""
    size = np.abs(values)
    bits = size.view(np.int64) if kind == "double" else size.astype(np.float32).view(np.int32).astype(np.int64)
    highest = (1 << _WIDTHS[kind] - 1) - 1
    return np.where(np.isnan(values), highest, np.where(values < 0, -bits, bits))


def width_of_kind(kind: str) -> int:
    """Return how many bits the values of a kind have."""
    if kind.startswith("decimal"):
        precision, _ = decimal_digits(kind)
        return int(10 ** min(precision, DIGITS)).bit_length() + 1
    return _WIDTHS[kind]


def decimal_digits(kind: str) -> tuple[int, int]:
    """Return the precision and scale of what SQL has as ``decimal(9,2)``."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    assert match is not None, kind
    return int(match[1]), int(match[2])


def high_part(kind: str) -> float | None:
    """Return what a decimal of more than 18 digits is multiplied by, so that 18 stand before the point; else None."""
    precision, scale = decimal_digits(kind)
    return float(f"1e{DIGITS - precision + scale}") if precision > DIGITS else None
