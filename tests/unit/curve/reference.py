"""Curves and encodings value by value: what the code for many values at once, and the SQL, are compared with."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from dbt_zorder.curve.bits import _WIDTHS, IEEE, decimal_digits, high_part, width_of_kind
from dbt_zorder.curve.hilbert import _direction, _entry, _gray_inverse, _rotate_left, _rotate_right

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def interleave(values: Sequence[int], bits: int) -> int:
    """Return the Morton key of one point.

    Args:
        values: one a column, 0 .. 2^bits - 1.
        bits: of each value; the key has ``bits * len(values)``.
    """
    key = 0
    for level in reversed(range(bits)):
        for value in values:
            key = key << 1 | value >> level & 1
    return key


def deinterleave(key: int, bits: int, columns: int) -> list[int]:
    """Return the point that a key was made from."""
    values = [0] * columns
    for place in reversed(range(bits * columns)):
        column = (bits * columns - 1 - place) % columns
        values[column] = values[column] << 1 | key >> place & 1
    return values


def hilbert_index(values: Sequence[int], bits: int) -> int:
    """Return the index of one point along the curve.

    Args:
        values: one a column, 0 .. 2^bits - 1; 1 to 8 columns.
        bits: of each value; the index has ``bits * len(values)``.
    """
    columns = len(values)
    entry, turn, index = 0, 1, 0
    for level in reversed(range(bits)):
        part = 0
        for value in values:
            part = part << 1 | value >> level & 1
        place = _gray_inverse(_rotate_right(part ^ entry, turn, columns))
        index = index << columns | place
        entry ^= _rotate_left(_entry(place), turn, columns)
        turn = (turn + _direction(place, columns)) % columns + 1
    return index


def hilbert_point(index: int, bits: int, columns: int) -> list[int]:
    """Return the point at an index: the inverse of ``hilbert_index``."""
    entry, turn, key = 0, 1, 0
    for level in reversed(range(bits)):
        place = index >> level * columns & (1 << columns) - 1
        part = _rotate_left(place ^ place >> 1, turn, columns) ^ entry
        key = key << columns | part
        entry ^= _rotate_left(_entry(place), turn, columns)
        turn = (turn + _direction(place, columns)) % columns + 1
    return deinterleave(key, bits, columns)


def encode(value: Any, kind: str) -> int:
    """Return the 64 bits of a value.

    Args:
        value: as PySpark collects it; ``months`` as int; None for NULL.
        kind: see ``dbt_zorder.curve.bits``.
    """
    if value is None:
        return 0
    width = width_of_kind(kind)
    number = _integer(value, kind)
    if width == 64:
        return max(number, 1 - (1 << 63)) + (1 << 63)
    return (number + (1 << width - 1)) << (64 - width) | 1


def _integer(value: Any, kind: str) -> int:
    if kind == "boolean":
        return int(value) - 1
    if kind in IEEE:
        return _ieee(value, kind)
    if kind.startswith("decimal"):
        high = high_part(kind)
        return int(float(value) * high) if high else int(Decimal(value).scaleb(decimal_digits(kind)[1]))
    if kind == "date":
        return int((value - date(1970, 1, 1)).days)
    if kind in ("timestamp", "timestamp_ntz"):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return _micros(aware - _EPOCH)
    if kind == "micros":
        return _micros(value)
    if kind in ("string", "binary"):
        start = value.encode() if isinstance(value, str) else bytes(value)
        return int.from_bytes(start[:8].ljust(8, b"\0"), "big") - (1 << 63)
    return int(value)


def _micros(span: timedelta) -> int:
    return int(span // timedelta(microseconds=1))


def _ieee(value: float, kind: str) -> int:
    """Return the bits of a number's size with its sign: one place for both zeros, NaN above all."""
    if value != value:
        return (1 << _WIDTHS[kind] - 1) - 1
    packed = struct.pack(">d" if kind == "double" else ">f", abs(value))
    size = int.from_bytes(packed, "big")
    return -size if value < 0 else size
