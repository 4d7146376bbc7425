"""The order of the rows of one cell, as the low bits of the integer that tells the cell."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.runs import Run, fitting_runs


def in_runs(place: str, place_bits: int, keys: Sequence[Key], runs: Sequence[Run]) -> str:
    """Return SQL text that orders rows by place, and those of one place so that equal values lie in runs.

    It stays one integer, which Spark sorts by its bits alone. Whole numbers go by their lowest bits, which mostly keeps
    their order within a cell, so that a page that holds a part of one has fewer values; all else by a hash.

    Args:
        place: SQL text of an integer, 0 or more.
        place_bits: that it takes at most.
        keys: of the clustering columns.
        runs: what is to lie in runs, first things first; the last are left out where they have no place.
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
    """Return SQL text of an integer that is the same for equal keys, and not NULL."""
    if not unit:
        return f"hash({key.expression})"
    return f"coalesce({key.expression if unit == 1 else f'{key.expression} div {unit}L'}, 0L)"
