"""Computes Hilbert's curve in SQL: one step down the curve's table per level (see ``curve.hilbert``)."""

from __future__ import annotations

from dbt_zorder.curve.hilbert import _PLACE, _PLACE_BITS, step_table
from dbt_zorder.engine.spark.lookup_tables import int_table


def step_sql(carried: str, digit: str, columns: int) -> str:
    """Return SQL text of one level: an INT with the state and, in its low bits, the place at this level.

    Args:
        carried: SQL text of the INT of the level above, used twice; 0 at the top.
        digit: SQL text of the level's digit of the Morton key, an INT.
        columns: number of columns.
    """
    table = int_table(step_table(columns))
    return f"(({carried}) & {~_PLACE}) ^ get({table}, shiftright({carried}, {_PLACE_BITS}) ^ ({digit}))"


def digit_sql(word: str, columns: int, below: int) -> str:
    """Return SQL text of one digit of a BIGINT word, followed by ``below`` more digits."""
    return f"CAST(shiftrightunsigned({word}, {below * columns}) & {(1 << columns) - 1} AS INT)"


def append_sql(index: str, carried: str, columns: int) -> str:
    """Return SQL text of an index with the place of one more level."""
    return f"(shiftleft({index}, {columns}) | (({carried}) & {_PLACE}))"


def fold_sql(word: str, carried: str, columns: int) -> str:
    """Return SQL text of eight levels at once: a struct of the carried INT ``z`` and the BIGINT ``h`` of seven levels.

    Sixty-four levels as stacked projections would be a Java method that is never compiled; a higher-order function
    needs none.
    """
    down = ", ".join(f"{level * columns}" for level in reversed(range(8)))
    digit = f"CAST(shiftrightunsigned({word}, d) & {(1 << columns) - 1} AS INT)"
    # appends the place of a level one level later, so that no step is evaluated twice
    return (
        f"aggregate(array({down}), named_struct('z', ({carried}) & {~_PLACE}, 'h', 0L), (a, d) -> "
        f"named_struct('z', {step_sql('a.z', digit, columns)}, 'h', {append_sql('a.h', 'a.z', columns)}))"
    )
