"""Cuts files into cells: the levels of a tree that order the rows inside a file, for all files at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.ranks import Mass, Ranks

_SMALLEST_CELL = 4  # sampled rows below which a cell is not cut further
_AS_WIDE = 0.85  # of columns that spread nearly as wide, the first is cut: a level of one column costs a row least


def order_cells(
    values: Ranks,
    cell: npt.NDArray[np.int64],
    cells: int,
    levels: int,
    mass: Sequence[Mass],
    weights: npt.NDArray[np.float64],
) -> list[npt.NDArray[np.int32]]:
    """Cut every cell ``levels`` times, each time the column whose values spread widest in it, at its median.

    Args:
        values: the sampled rows, sorted by cell.
        cell: of each of them.
        cells: how many there are.
        levels: how often to cut; fewer if nothing is left to cut.
        mass: of each column, to measure how wide values spread.
        weights: one a column.

    Returns:
        The cuts of each level, in the form of ``Forest.cuts``.
    """
    cuts: list[npt.NDArray[np.int32]] = []
    for _ in range(levels):
        level = _cut_level(values, cell, cells, mass, weights)
        if not level.any():
            break
        cuts.append(level)
        here = level[:, cell]
        right = ((here > 0) & (values.T >= here)).any(axis=0)
        cell = 2 * cell + right
        order = np.argsort(cell, kind="stable")
        cell, values, cells = cell[order], values[order], 2 * cells
    return cuts


def _cut_level(
    values: Ranks, cell: npt.NDArray[np.int64], cells: int, mass: Sequence[Mass], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int32]:
    """Return one level's cuts; ``values`` and ``cell`` are sorted by cell."""
    level = np.zeros((len(mass), cells), dtype=np.int32)
    if len(cell) == 0:
        return level
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    present = cell[starts]  # cells that hold any rows
    counts = np.diff(starts, append=len(cell))
    low = np.minimum.reduceat(values, starts, axis=0)
    high = np.maximum.reduceat(values, starts, axis=0)
    spread = np.stack([m[high[:, c]] - m[np.maximum(low[:, c] - 1, 0)] for c, m in enumerate(mass)], axis=1) * weights
    spread[low == high] = -1.0
    spread[counts < _SMALLEST_CELL] = -1.0
    column = np.argmax(spread >= _AS_WIDE * spread.max(axis=1, keepdims=True), axis=1)
    cuttable = spread.max(axis=1) >= 0
    place = np.repeat(np.arange(len(present)), counts)
    chosen = values[np.arange(len(values)), column[place]]
    inside = chosen[np.lexsort((chosen, cell))]
    median = inside[starts + counts // 2]
    # where half of the rows hold the least value, the cut parts it from the next: a cut at the least parts nothing
    least = inside[starts]
    following = np.minimum.reduceat(np.where(inside > least[place], inside, np.iinfo(np.int32).max), starts)
    rank = np.where(median > least, median, following)
    level[column[cuttable], present[cuttable]] = rank[cuttable]
    return level
