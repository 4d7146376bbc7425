"""A grid that orders the rows inside every file: few boundaries a column in place of the tree's many cuts.

Below the files, the tree has about a hundred cuts in each file. All files share the boundaries of a grid. A row's
position is the Morton key of its ranks among the boundaries. Each rank is used once, so Spark can sort by an expression
of the columns and rows need no key column. A grid is coarser than the tree: two correlated columns leave most of its
cells empty. Therefore the sample compares grid and tree by the pages that queries would read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.morton import LONG_BITS, spread
from dbt_zorder.curve.ranks import Mass, Ranks, cumulative_mass
from dbt_zorder.curve.tree import Forest, descend

BOUNDARIES = (14, 30, 62, 126, 254)
"""Numbers of boundaries to try, for all columns together; the smallest that serves is best."""

_AS_GOOD = 1.15
_EACH_AS_GOOD = 1.25
"""Limits on the pages that a grid reads, as ratios to the tree's pages.

``_AS_GOOD`` limits the sum over queries on all columns, ``_EACH_AS_GOOD`` the queries on each column.
"""

_HARDLY_CUT = 1.5
"""Pages of a file up to which the order of its rows can hardly spare any of them."""


@dataclass(frozen=True)
class Grid:
    """Boundaries and codes, one list for each column.

    Attributes:
        cuts: ascending ranks of the sample. A row of rank >= cut is above the cut; NULL is above none.
        codes: the column's part of the key for rows above none, one, two, ... of its cuts; one code more than cuts. The
            key is the sum of the parts.
    """

    cuts: tuple[tuple[int, ...], ...]
    codes: tuple[tuple[int, ...], ...]

    def keys(self, ranks: Ranks) -> npt.NDArray[np.int64]:
        """Return the key of every row; the reference for Spark's sort expression."""
        key = np.zeros(len(ranks), dtype=np.int64)
        for column, (cuts, codes) in enumerate(zip(self.cuts, self.codes, strict=True)):
            key += np.asarray(codes, dtype=np.int64)[np.searchsorted(cuts, ranks[:, column], side="right")]
        return key


def fit_grid(forest: Forest, ranks: Ranks, pages: float, most: int = BOUNDARIES[-1]) -> Grid | None:
    """Return the smallest grid that reads hardly more pages than the tree's levels below its files.

    Args:
        forest: forest of one tree.
        ranks: ranks of the sample that the forest was grown over.
        pages: pages of a file.
        most: limit on the boundaries of all columns together.

    Returns:
        The grid, or None if no grid is as good.
    """
    if most < BOUNDARIES[0]:
        return None
    below = list(forest.cuts[forest.file_levels :])
    wanted = [np.concatenate([level[column] for level in below] or [[]]) for column in range(ranks.shape[1])]
    wanted = [np.sort(cuts[cuts > 0]).astype(np.int64) for cuts in wanted]
    if pages <= _HARDLY_CUT:
        return _grid(wanted, BOUNDARIES[0])
    cell = descend(forest, ranks, np.zeros(len(ranks), dtype=np.int32))
    file = cell >> len(below)
    mass = [cumulative_mass(ranks[:, column]) for column in range(ranks.shape[1])]
    page_rows = max(1, int(len(ranks) / forest.files / max(pages, 1.0)))
    least = _pages_read(ranks, file, cell, page_rows, mass)
    for boundaries in (number for number in BOUNDARIES if number <= most):
        grid = _grid(wanted, boundaries)
        read = _pages_read(ranks, file, grid.keys(ranks), page_rows, mass)
        if read.sum() <= _AS_GOOD * least.sum() and (read <= _EACH_AS_GOOD * least).all():
            return grid
    return None


def _grid(wanted: Sequence[npt.NDArray[np.int64]], boundaries: int) -> Grid:
    """Distribute boundaries over columns, as quantiles of the tree's cuts.

    The tree's cuts lie where rows need to be separated.
    """
    distinct = [len(np.unique(cuts)) for cuts in wanted]
    shares = _shares(distinct, boundaries)
    chosen = [
        np.unique(cuts[(2 * np.arange(share) + 1) * len(cuts) // (2 * share)]) if share else cuts[:0]
        for cuts, share in zip(wanted, shares, strict=True)
    ]
    bits = max((len(cuts).bit_length() for cuts in chosen), default=0)
    codes = [
        tuple(spread((rank << bits) // (len(cuts) + 1), column, len(chosen)) for rank in range(len(cuts) + 1))
        for column, cuts in enumerate(chosen)
    ]
    return Grid(tuple(tuple(map(int, cuts)) for cuts in chosen), tuple(codes))


def _shares(distinct: Sequence[int], boundaries: int) -> list[int]:
    """Distribute boundaries evenly over columns, up to what each can use.

    What one column cannot use goes to the others, within the bits of the key.
    """
    shares = [0] * len(distinct)
    most = (1 << LONG_BITS // len(distinct)) - 1
    order = sorted(range(len(distinct)), key=lambda column: distinct[column])
    for place, column in enumerate(order):
        shares[column] = min(distinct[column], boundaries // (len(order) - place), most)
        boundaries -= shares[column]
    return shares


def _pages_read(
    ranks: Ranks, file: npt.NDArray[np.int64], order: npt.NDArray[np.int64], page_rows: int, mass: Sequence[Mass]
) -> npt.NDArray[np.float64]:
    """Return for each column the pages that an equality query reads, weighted by the rows' own values."""
    # a shuffle keeps no order among equal rows, so the sample's own order must not count
    rows = np.lexsort((np.random.default_rng(0).permutation(len(ranks)), order, file))
    if len(rows) == 0:
        return np.zeros(len(mass))
    files = file[rows]
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    place = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    pages = np.flatnonzero(place % page_rows == 0)
    values = ranks[rows]
    high = np.maximum.reduceat(values, pages, axis=0)
    low = np.minimum.reduceat(np.where(values > 0, values, np.iinfo(np.int32).max), pages, axis=0)
    low = np.clip(low, 1, np.maximum(high, 1))  # a page of NULL alone matches no value
    return np.asarray([(m[high[:, column]] - m[low[:, column] - 1]).sum() for column, m in enumerate(mass)])
