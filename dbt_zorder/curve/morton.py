"""Morton's curve, Z-order: the interleaved bits of several integers, from the top (Morton 1966, Hudi RFC-28).

A key of up to 63 bits is one BIGINT. A longer key is a BINARY whose unsigned lexicographic order is the curve's. Eight
levels at a time make a word of 8 x columns bits, and the key is the sequence of these words.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

LONG_BITS = 63
"""Largest number of bits of a key that is one BIGINT and not negative."""

_BYTE = 8

Digits = npt.NDArray[np.int64]
"""Digits of one level of a curve, shape (rows,): one bit a column, the first column's bit is the highest."""


def spread(value: int, column: int, columns: int) -> int:
    """Return one value's part of the key; the key of a point is the OR of its columns' parts."""
    key = 0
    for place in range(value.bit_length()):
        key |= (value >> place & 1) << (place * columns + columns - 1 - column)
    return key


def digits(values: npt.NDArray[np.uint64], bits: int) -> Iterator[Digits]:
    """Yield the digits of many keys level by level, from the top.

    Args:
        values: values of the points, shape (rows, columns).
        bits: number of bits of each value, at most 64.
    """
    for level in reversed(range(bits)):
        digit = np.zeros(len(values), dtype=np.int64)
        for column in range(values.shape[1]):
            digit = digit << 1 | (values[:, column] >> np.uint64(level) & np.uint64(1)).astype(np.int64)
        yield digit


def pack_long(levels: Iterator[Digits], columns: int) -> npt.NDArray[np.int64]:
    """Return the BIGINT keys of digits, shape (rows,)."""
    key: npt.NDArray[np.int64] | None = None
    for digit in levels:
        key = digit if key is None else key << columns | digit
    assert key is not None, "a key has at least one level"
    return key


def pack_bytes(levels: Iterator[Digits], columns: int) -> npt.NDArray[np.uint8]:
    """Return the BINARY keys of digits, shape (rows, levels * columns / 8).

    The number of levels is a multiple of eight.
    """
    words: list[npt.NDArray[np.uint64]] = []
    for number, digit in enumerate(levels):
        if number % _BYTE == 0:
            words.append(np.zeros(len(digit), dtype=np.uint64))
        words[-1] = words[-1] << np.uint64(columns) | digit.astype(np.uint64)
    every = np.stack(words, axis=1).astype(">u8").view(np.uint8).reshape(len(words[0]), len(words), _BYTE)
    return np.ascontiguousarray(every[:, :, _BYTE - columns :]).reshape(len(words[0]), len(words) * columns)


def interleave_bytes(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return the BINARY keys of many points whose values have 64 bits, shape (rows, 8 * columns).

    Like ``words_sql``, look up each byte in a table, which replaces a step for each bit.

    Args:
        values: values of the points, shape (rows, columns).
    """
    rows, columns = values.shape
    tables = [
        np.asarray([spread(byte, column, columns) for byte in range(1 << _BYTE)], dtype=np.uint64)
        for column in range(columns)
    ]
    found = np.empty((rows, _BYTE, columns), dtype=np.uint8)
    for place in range(_BYTE):
        shift = np.uint64((_BYTE - 1 - place) * _BYTE)
        word = np.zeros(rows, dtype=np.uint64)
        for column, table in enumerate(tables):
            word |= table[(values[:, column] >> shift & np.uint64(255)).astype(np.intp)]
        found[:, place] = word.astype(">u8").view(np.uint8).reshape(rows, _BYTE)[:, _BYTE - columns :]
    return found.reshape(rows, _BYTE * columns)
