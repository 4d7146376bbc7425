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
from dbt_zorder.engine.spark.lookup_tables import int_table

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


def step_sql(carried: str, digit: str, columns: int) -> str:
    """Return SQL text of one level: an INT that carries the state and, in its low bits, the place at this level.

    Args:
        carried: SQL text of the same of the level above, used twice; 0 at the top.
        digit: SQL text of the level's digit of the Morton key, an INT.
        columns: number of columns.
    """
    table = int_table(step_table(columns))
    return f"(({carried}) & {~_PLACE}) ^ get({table}, shiftright({carried}, {_PLACE_BITS}) ^ ({digit}))"


def digit_sql(word: str, columns: int, below: int) -> str:
    """Return SQL text of one digit of a BIGINT word, of which ``below`` more come after it."""
    return f"CAST(shiftrightunsigned({word}, {below * columns}) & {(1 << columns) - 1} AS INT)"


def append_sql(index: str, carried: str, columns: int) -> str:
    """Return SQL text of an index with the place of one more level."""
    return f"(shiftleft({index}, {columns}) | (({carried}) & {_PLACE}))"


def fold_sql(word: str, carried: str, columns: int) -> str:
    """Return SQL text of eight levels at once: a struct of the carried INT ``z`` and the BIGINT ``h`` of seven of them.

    Sixty-four levels as stacked projections would be a Java method that is never compiled; a higher-order function is
    evaluated without one.
    """
    down = ", ".join(f"{level * columns}" for level in reversed(range(8)))
    digit = f"CAST(shiftrightunsigned({word}, d) & {(1 << columns) - 1} AS INT)"
    # the place of a level is appended one level later, so that no step is evaluated twice
    return (
        f"aggregate(array({down}), named_struct('z', ({carried}) & {~_PLACE}, 'h', 0L), (a, d) -> "
        f"named_struct('z', {step_sql('a.z', digit, columns)}, 'h', {append_sql('a.h', 'a.z', columns)}))"
    )


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
