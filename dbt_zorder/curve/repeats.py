"""Which columns to sort the rows of a cell by, so that equal values lie in runs, which Parquet writes in few bytes.

Cells are smaller than pages, so the order inside them is nearly free to choose. But it replaces the one that rows came
in, which often has runs of its own, and reading rows back from a sort costs more the farther they lie apart, so it must
be worth it: docs/decisions/011.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.ranks import Ranks

_MOST_RUNS = 3
"""Columns to sort by: behind them, rows that are still alike are few."""

_LEAST_RUN = 4.0
_FEWEST_RUNS = 2


def run_columns(cell: npt.NDArray[np.int64], ranks: Ranks, rows: int) -> tuple[int, ...]:
    """Return the columns to sort by, the one with the longest runs first.

    There are two at least, or none: rows that are alike in one column alone gain less than what they lose.

    Args:
        cell: shape (rows of the sample,): where each of them comes to.
        ranks: the sampled rows, see ``Ranks``.
        rows: of the whole table.
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
    """Return the mean size of the groups of a table, by those of its sample's rows.

    How many groups a sample has missed is estimated by those that it has met once and twice (Chao 1984, corrected for
    its bias). The mean size of a row's group would be easier to tell, but a few heavy values make it large.
    """
    sizes = np.bincount(group)
    once, twice = int((sizes == 1).sum()), int((sizes == 2).sum())
    missed = once * (once - 1) / (2 * (twice + 1)) if rows > len(group) else 0.0
    return rows / max(1.0, len(sizes) + missed)
