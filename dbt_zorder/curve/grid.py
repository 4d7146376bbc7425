"""A grid that orders the rows inside every file: few boundaries a column, in place of the tree's many cuts.

Below the files the tree has some hundred cuts a file. The boundaries of a grid are shared by all files, and a row's
place is the Morton key of its ranks among them, each rank used once, so that Spark can sort by an expression of the
columns and no row needs to carry a key. A grid knows less than the tree: two columns that go together leave most of its
cells empty. So it is held against the tree, on the sample, by the pages that queries would read.
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
"""Of all columns together: as few as serve."""

_AS_GOOD = 1.15
_EACH_AS_GOOD = 1.25
"""Pages that a grid may read, as a ratio to the tree's: by queries of all columns together, and of each."""

_HARDLY_CUT = 1.5
"""Pages of a file up to which there is next to nothing that the order of its rows could spare."""


@dataclass(frozen=True)
class Grid:
    """Boundaries and codes, a list a column.

    Attributes:
        cuts: ascending ranks of the sample: a row of rank >= cut is above it; NULL is above none.
        codes: one more than cuts: the part of the key of what is above none, one, two, ... of them. The key is the sum
            of the columns' parts.
    """

    cuts: tuple[tuple[int, ...], ...]
    codes: tuple[tuple[int, ...], ...]

    def keys(self, ranks: Ranks) -> npt.NDArray[np.int64]:
        """Return the key of every row: the scalar reference of what Spark sorts by."""
        key = np.zeros(len(ranks), dtype=np.int64)
        for column, (cuts, codes) in enumerate(zip(self.cuts, self.codes, strict=True)):
            key += np.asarray(codes, dtype=np.int64)[np.searchsorted(cuts, ranks[:, column], side="right")]
        return key


def fit_grid(forest: Forest, ranks: Ranks, pages: float, most: int = BOUNDARIES[-1]) -> Grid | None:
    """Return the smallest grid that reads hardly more pages than the levels of a tree below its files.

    Args:
        forest: of one tree.
        ranks: the sample that it was grown over.
        pages: of a file.
        most: boundaries of all columns together.

    Returns:
        None if no grid does.
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
    """Share boundaries out over columns; each takes quantiles of the tree's cuts, which lie where rows are parted."""
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
    """Share out evenly what columns can use; what one cannot use goes to the others, as far as their bits fit a key."""
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
    """Return for each column the pages that an equality query reads, by the rows' own values."""
    # among equals a shuffle keeps no order, also where the sample came in one
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
    low = np.clip(low, 1, np.maximum(high, 1))  # of a page with nothing but NULL, which no value is on
    return np.asarray([(m[high[:, column]] - m[low[:, column] - 1]).sum() for column, m in enumerate(mass)])
