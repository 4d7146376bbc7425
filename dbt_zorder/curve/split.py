"""Cuts a sample into files: the levels of a tree that choose the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve import packing
from dbt_zorder.curve.ranks import Mass, Ranks

_BALANCED = 0.15  # a cut whose sides have up to 15% more rows a file than their share counts as balanced
_TOO_UNEVEN = 0.4  # above this, a hash that fills files evenly serves better than any cut


_AS_GOOD = 0.03  # cuts that differ by less are as good as each other


@dataclass
class FileCell:
    """Rows of the sample in one node, and the number of files that are to hold them."""

    rows: npt.NDArray[np.int64]
    files: int
    exhausted: bool = False

    @property
    def cuttable(self) -> bool:
        """Whether the cell is to become more than one file, and some column may part its rows."""
        return self.files > 1 and not self.exhausted


@dataclass(frozen=True)
class _Cut:
    column: int
    rank: int
    left_files: int
    imbalance: float


class Splitter:
    """Cuts cells so that the sum over columns of the files that an equality filter touches stays smallest.

    The share of rows whose value lies between a cell's least and greatest is the chance that such a filter touches the
    cell. Cutting a column leaves its own sum as it is and nearly doubles every other, so the column with the widest
    share is cut; for columns that go together the true shares of both halves are counted.
    """

    def __init__(self, ranks: Ranks, mass: Sequence[Mass], weights: npt.NDArray[np.float64]) -> None:
        self._ranks = ranks
        self._mass = mass
        self._weights = weights

    def cut_level(self, cells: list[FileCell]) -> tuple[npt.NDArray[np.int32], list[FileCell]]:
        """Cut every cell once; return the level's cuts and the children, two a cell."""
        level = np.zeros((self._ranks.shape[1], len(cells)), dtype=np.int32)
        children: list[FileCell] = []
        touched = np.zeros(self._ranks.shape[1])
        for number, cell in enumerate(cells):
            cut = self._best_cut(cell, touched)
            if cut is None:
                # what no column can cut stays one cell; the right child exists only so that nodes count in twos
                children += [FileCell(cell.rows, cell.files, True), FileCell(cell.rows[:0], 0, True)]
                continue
            level[cut.column, number] = cut.rank
            right = self._ranks[cell.rows, cut.column] >= cut.rank
            children.append(FileCell(cell.rows[~right], cut.left_files))
            children.append(FileCell(cell.rows[right], cell.files - cut.left_files))
        return level, children

    def _best_cut(self, cell: FileCell, touched: npt.NDArray[np.float64]) -> _Cut | None:
        """Return the cut after which fewest files are touched, and add what it touches to ``touched``."""
        if not cell.cuttable:
            return None
        here = self._ranks[cell.rows]
        found = [cut for column in range(here.shape[1]) if (cut := _balanced_cut(here[:, column], column, cell.files))]
        evenest = min((cut.imbalance for cut in found), default=_TOO_UNEVEN)
        if evenest >= _TOO_UNEVEN:
            return None
        tolerance = max(_BALANCED, evenest)
        found = [cut for cut in found if cut.imbalance <= tolerance]
        found += [cut for cut in self._planned_cuts(here, cell.files, touched) if cut.imbalance <= tolerance]
        scored = [(self._touched(here, cut, cell.files), cut) for cut in found]
        enough = min(float(shares.sum()) for shares, _ in scored) * (1 + _AS_GOOD)
        equals = [(shares, cut) for shares, cut in scored if shares.sum() <= enough]
        # the last level may not reach around all columns: share it out, so that no column is left behind
        shares, best = min(equals, key=lambda scored: float((touched + scored[0]).max()))
        touched += shares
        return best

    def _planned_cuts(self, here: Ranks, files: int, touched: npt.NDArray[np.float64]) -> list[_Cut]:
        """Return the first cuts of the best ways to cut a few files, which need not be halves."""
        columns = here.shape[1]
        if not 2 < files <= packing.MOST_FILES or not packing.known(columns, files):
            return []
        ways = packing.ways(columns, files)
        expected = ways.touched * self._shares(here)
        sums = expected.sum(axis=1)
        good = np.flatnonzero(sums <= sums.min() * (1 + _AS_GOOD))
        best = good[np.argmin((touched + expected[good]).max(axis=1))]
        column, left = int(ways.column[best]), int(ways.left_files[best])
        return [
            cut
            for left_files in {left, files - left}
            if (cut := _cut_at(here[:, column], column, files, left_files)) is not None
        ]

    def _shares(self, half: Ranks) -> npt.NDArray[np.float64]:
        """Return by column the weighted chance that an equality query's value lies within a cell's bounds."""
        shares = np.zeros(len(self._mass))
        for column, mass in enumerate(self._mass):
            values = half[:, column]
            values = values[values > 0]
            if len(values):
                shares[column] = self._weights[column] * float(mass[values.max()] - mass[values.min() - 1])
        return shares

    def _touched(self, here: Ranks, cut: _Cut, files: int) -> npt.NDArray[np.float64]:
        """Return by column what both halves add to the files that an equality query touches.

        Where the ways to cut them further are known, their best counts; else one cell counts as one file, which is as
        good to compare halves.
        """
        right = here[:, cut.column] >= cut.rank
        total = np.zeros(len(self._mass))
        for half, count in ((here[~right], cut.left_files), (here[right], files - cut.left_files)):
            shares = self._shares(half)
            if packing.known(len(shares), files):
                expected = packing.ways(len(shares), count).touched * shares
                shares = expected[int(np.argmin(expected.sum(axis=1)))]
            total += shares
        return total


def _balanced_cut(values: npt.NDArray[np.int32], column: int, files: int) -> _Cut | None:
    """Return the cut that shares out rows and files most evenly, nearest the middle; None for a single value."""
    return _cut_at(values, column, files, None)


def _cut_at(values: npt.NDArray[np.int32], column: int, files: int, left_files: int | None) -> _Cut | None:
    """Return the most even cut with ``left_files`` files left of it; with any number near half of them if None."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return None
    left_share = np.cumsum(counts)[:-1] / len(values)
    left = np.clip(np.rint(left_share * files), 1, files - 1) if left_files is None else np.full(1, float(left_files))
    left_fill = left_share / left * files
    right_fill = (1 - left_share) / (files - left) * files
    # a file that is too small counts like one that is too large by the same factor
    imbalance = np.maximum(np.maximum(left_fill, right_fill), 1 / np.minimum(left_fill, right_fill)) - 1
    best = int(np.argmin(imbalance + (np.abs(left / files - 0.5) if left_files is None else 0)))
    return _Cut(
        column, int(distinct[best + 1]), int(np.broadcast_to(left, imbalance.shape)[best]), float(imbalance[best])
    )
