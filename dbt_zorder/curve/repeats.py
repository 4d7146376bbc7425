"""The columns that sort the rows of a cell, so that equal values lie in runs, which Parquet encodes in few bytes.

Cells are smaller than pages, so the order inside them is nearly free to choose. But it replaces the order of arrival,
which often has runs of its own. Reading rows back from a sort also costs more the farther apart they lie. Therefore the
sort must be worth it: docs/decisions/011.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.ranks import Ranks

_MOST_RUNS = 3
"""Largest number of columns to sort by; beyond it, few rows are still alike."""

_LEAST_RUN = 4.0
_FEWEST_RUNS = 2


def run_columns(cell: npt.NDArray[np.int64], ranks: Ranks, rows: int) -> tuple[int, ...]:
    """Return the columns to sort by, the one with the longest runs first.

    Return two columns at least, or none: runs in one column alone gain less than the sort loses.

    Args:
        cell: cell of each sampled row, shape (rows,).
        ranks: ranks of the sampled rows, see ``Ranks``.
        rows: number of rows of the whole table.
    """
    chosen: list[int] = []
    group = cell
    while len(chosen) < min(_MOST_RUNS, ranks.shape[1]):
        left = [column for column in range(ranks.shape[1]) if column not in chosen]
        within = [np.unique(_pairs(group, ranks[:, column]), return_inverse=True)[1] for column in left]
        lengths = [_mean_size(groups, rows) for groups in within]
        longest = int(np.argmax(lengths))
        if lengths[longest] < _LEAST_RUN:
            break
        chosen.append(left[longest])
        group = within[longest]
    return tuple(chosen) if len(chosen) >= _FEWEST_RUNS else ()


def _pairs(group: npt.NDArray[np.int64], rank: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return group * (int(rank.max(initial=0)) + 1) + rank


def _mean_size(group: npt.NDArray[np.int64], rows: int) -> float:
    """Return the mean size of the table's groups, estimated from the sample.

    The groups that the sample has missed are estimated from those that it contains once and twice (Chao 1984, corrected
    for bias). The mean group size by row would be easier to estimate, but a few heavy values inflate it.
    """
    sizes = np.bincount(group)
    once, twice = int((sizes == 1).sum()), int((sizes == 2).sum())
    missed = once * (once - 1) / (2 * (twice + 1)) if rows > len(group) else 0.0
    return rows / max(1.0, len(sizes) + missed)
