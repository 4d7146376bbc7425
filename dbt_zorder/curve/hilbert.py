"""Hilbert's curve in 1 to 8 dimensions, by the algebra of Hamilton (Compact Hilbert Indices, Dalhousie CS-2006-07).

Going down the levels, a cell of 2^k parts is walked in the order of the Gray code, turned by a state of an entry corner
``e`` and a direction ``d``. With the rotation ``s = d + 1``, a point in part ``l`` lies in the place

    w = gray^-1(rotr(l XOR e, s)),    e' = e XOR rotl(entry(w), s),    s' = (s + direction(w)) mod k + 1.

All of it depends on ``l XOR e`` and ``s`` alone. So the state is one integer ``x = (s - 1) << k | e``, and one table of
k x 2^k numbers at ``x XOR l`` holds the place and what the state changes by: a level costs one look-up and a few XORs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from dbt_zorder.curve.morton import Digits

_PLACE_BITS = 8
"""Low bits of a table's entry that hold the place; the change of the state stands above them."""

_PLACE = (1 << _PLACE_BITS) - 1


@lru_cache
def step_table(columns: int) -> tuple[int, ...]:
    """Return, for each ``x XOR l``, the change of the state above ``_PLACE_BITS`` and the place ``w`` below them."""
    entries = []
    for turn in range(1, columns + 1):
        for part in range(1 << columns):
            place = _gray_inverse(_rotate_right(part, turn, columns))
            following = (turn + _direction(place, columns)) % columns + 1
            change = (turn - 1 ^ following - 1) << columns | _rotate_left(_entry(place), turn, columns)
            entries.append(change << _PLACE_BITS | place)
    return tuple(entries)


def hilbert_digits(levels: Iterator[Digits], columns: int) -> Iterator[Digits]:
    """Turn the digits of Morton keys into those of Hilbert indices, from the top, for many points at once."""
    table = np.asarray(step_table(columns), dtype=np.int64)
    state: Digits | None = None
    for digit in levels:
        state = np.zeros_like(digit) if state is None else state
        found = table[state ^ digit]
        state = state ^ found >> _PLACE_BITS
        yield found & _PLACE


def _gray_inverse(code: int) -> int:
    value = 0
    while code:
        value ^= code
        code >>= 1
    return value


def _entry(place: int) -> int:
    """Return the corner at which the part at a place is entered (Hamilton, theorem 2.10)."""
    if place == 0:
        return 0
    even = 2 * ((place - 1) // 2)
    return even ^ even >> 1


def _direction(place: int, columns: int) -> int:
    """Return the direction in which the part at a place is crossed (Hamilton, lemma 2.8)."""
    if place == 0:
        return 0
    odd = place if place % 2 else place - 1
    return ((odd + 1 & -(odd + 1)).bit_length() - 1) % columns


def _rotate_right(value: int, by: int, width: int) -> int:
    return (value >> by % width | value << width - by % width) & (1 << width) - 1


def _rotate_left(value: int, by: int, width: int) -> int:
    return _rotate_right(value, width - by % width, width)
