"""Hilbert's curve in 1 to 8 dimensions, by the algebra of Hamilton (Compact Hilbert Indices, Dalhousie CS-2006-07).

On each level, the curve visits the 2^k parts of a cell in the order of the Gray code. A state of an entry corner ``e``
and a direction ``d`` rotates that order. With the rotation ``s = d + 1``, a point in part ``l`` has the position

    w = gray^-1(rotr(l XOR e, s)),    e' = e XOR rotl(entry(w), s),    s' = (s + direction(w)) mod k + 1.

The position and the change of the state depend on ``l XOR e`` and ``s`` alone. Therefore one integer
``x = (s - 1) << k | e`` is the state. One table of k x 2^k numbers gives the position and the change at ``x XOR l``. A
level costs one look-up and a few XORs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from dbt_zorder.curve.morton import Digits

_PLACE_BITS = 8
"""Low bits of a table entry that contain the position; the change of the state is above them."""

_PLACE = (1 << _PLACE_BITS) - 1


@lru_cache
def step_table(columns: int) -> tuple[int, ...]:
    """Return the position ``w`` and, above ``_PLACE_BITS``, the change of the state for each ``x XOR l``."""
    entries = []
    for turn in range(1, columns + 1):
        for part in range(1 << columns):
            place = _gray_inverse(_rotate_right(part, turn, columns))
            following = (turn + _direction(place, columns)) % columns + 1
            change = (turn - 1 ^ following - 1) << columns | _rotate_left(_entry(place), turn, columns)
            entries.append(change << _PLACE_BITS | place)
    return tuple(entries)


def hilbert_digits(levels: Iterator[Digits], columns: int) -> Iterator[Digits]:
    """Convert the digits of many Morton keys to those of Hilbert indices, from the top level down."""
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
    """Return the corner at which the curve enters the part at a position (Hamilton, theorem 2.10)."""
    if place == 0:
        return 0
    even = 2 * ((place - 1) // 2)
    return even ^ even >> 1


def _direction(place: int, columns: int) -> int:
    """Return the direction in which the curve crosses the part at a position (Hamilton, lemma 2.8)."""
    if place == 0:
        return 0
    odd = place if place % 2 else place - 1
    return ((odd + 1 & -(odd + 1)).bit_length() - 1) % columns


def _rotate_right(value: int, by: int, width: int) -> int:
    return (value >> by % width | value << width - by % width) & (1 << width) - 1


def _rotate_left(value: int, by: int, width: int) -> int:
    return _rotate_right(value, width - by % width, width)
