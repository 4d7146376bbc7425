"""Orders the rows of one cell by the low bits of the integer that contains the cell."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.runs import Run, fitting_runs


def in_runs(place: str, place_bits: int, keys: Sequence[Key], runs: Sequence[Run]) -> str:
    """Return SQL text of a sort key: rows are ordered by place, and within a place equal values form runs.

    It remains one integer, which Spark sorts by its bits alone. Whole numbers contribute their lowest bits, which
    mostly keeps their order within a cell: a page with a part of a cell then has fewer values. Other types contribute a
    hash.

    Args:
        place: SQL text of a non-negative integer.
        place_bits: maximum bits of that integer.
        keys: keys of the clustering columns.
        runs: columns that form runs, most important first; the last ones are dropped if bits are lacking.
    """
    runs, bits = fitting_runs(runs, place_bits)
    if not runs:
        return place
    behind = [bits * (len(runs) - number) for number in range(len(runs) + 1)]
    parts = [f"shiftleft(CAST({place} AS BIGINT), {behind[0]})"]
    for run, shift in zip(runs, behind[1:], strict=True):
        parts.append(f"shiftleft(CAST({_number(keys[run.key], run.unit)} AS BIGINT) & {(1 << bits) - 1}L, {shift})")
    return " + ".join(parts)


def _number(key: Key, unit: int) -> str:
    """Return SQL text of an integer that is equal for equal keys, and never NULL."""
    if not unit:
        return f"hash({key.expression})"
    return f"coalesce({key.expression if unit == 1 else f'{key.expression} div {unit}L'}, 0L)"
