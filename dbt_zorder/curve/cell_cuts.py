"""Cuts of files into cells: the levels of a tree that order the rows inside a file, for all files at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.ranks import Mass, Ranks

_SMALLEST_CELL = 4  # sampled rows below which a cell stays whole
_AS_WIDE = 0.85  # the first column of nearly equal spread is cut: a level that cuts one column is cheapest per row


def order_cells(
    values: Ranks,
    cell: npt.NDArray[np.int64],
    cells: int,
    levels: int,
    mass: Sequence[Mass],
    weights: npt.NDArray[np.float64],
) -> list[npt.NDArray[np.int32]]:
    """Cut every cell ``levels`` times, each time in the column with the widest spread, at its median.

    Args:
        values: ranks of the sampled rows, sorted by cell.
        cell: cell of each row, shape (rows,).
        cells: number of cells.
        levels: number of cuts; fewer are made if nothing is left to cut.
        mass: cumulative mass of each column, which measures the spread of values.
        weights: one weight for each column.

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
    """Return the cuts of one level; ``values`` and ``cell`` are sorted by cell."""
    level = np.zeros((len(mass), cells), dtype=np.int32)
    if len(cell) == 0:
        return level
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    present = cell[starts]  # cells with at least one row
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
    # a cut at the least value separates nothing, so if half of the rows have it, cut at the next value
    least = inside[starts]
    following = np.minimum.reduceat(np.where(inside > least[place], inside, np.iinfo(np.int32).max), starts)
    rank = np.where(median > least, median, following)
    level[column[cuttable], present[cuttable]] = rank[cuttable]
    return level
