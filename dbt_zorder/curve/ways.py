"""Ways to cut a box into a few files, and which of them to take where a box, or two halves of one, stand in a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

AS_GOOD = 0.03  # cuts and ways whose sums over columns differ by less are as good as each other

_SQUARINGS = 4  # columns are added up by their sixteenth powers, so that the worst counts most
_OTHERS = 0.01  # how much the sum counts beside that
_MOST_PAIRED = 300  # of the ways to cut either half
_TIE = 1e-9

_Floats = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ways:
    """Ways to cut a box into files.

    Attributes:
        touched: shape (ways, columns): files that an equality query on each column touches on average.
        column: shape (ways,): the column of the first cut.
        left_files: shape (ways,): how many of the files lie left of it.
        left_way: shape (ways,): how the left half is cut further, a place among its own ways.
        right_way: shape (ways,): the same of the right half.
    """

    touched: _Floats
    column: _Numbers
    left_files: _Numbers
    left_way: _Numbers
    right_way: _Numbers

    def good(self, shares: _Floats) -> _Numbers:
        """Return the places of ways that touch hardly more in sum than the best, 300 of the best at most.

        Args:
            shares: shape (columns,): how much each counts, by the width of the box or otherwise.
        """
        sums = (self.touched * shares).sum(axis=1)
        good = np.flatnonzero(sums <= sums.min() * (1 + AS_GOOD))
        if len(good) <= _MOST_PAIRED:
            return good
        last = np.partition(sums, _MOST_PAIRED - 1)[_MOST_PAIRED - 1]
        better = np.flatnonzero(sums < last * (1 - _TIE))
        # turns of one way, whose order is that of the columns: some of all
        tied = np.flatnonzero(np.abs(sums - last) <= last * _TIE)
        some = np.linspace(0, len(tied) - 1, _MOST_PAIRED - len(better)).astype(np.int64)
        return np.concatenate([better, tied[some]])

    def first_cuts(self, shares: _Floats) -> list[tuple[int, int]]:
        """Return columns of the cuts that good ways begin with, and files of the smaller half."""
        good = self.good(shares)
        return sorted(set(zip(self.column[good].tolist(), self.left_files[good].tolist(), strict=True)))


def unevenness(touched: _Floats) -> _Floats:
    """Return a measure, over the last axis, of what columns touch; the worst column counts most.

    By the worst alone, ties would decide for the others.
    """
    powers = touched
    for _ in range(_SQUARINGS):
        powers = powers * powers
    worst = powers.sum(axis=-1)
    for _ in range(_SQUARINGS):
        worst = np.sqrt(worst)
    return np.asarray(worst + _OTHERS * touched.sum(axis=-1))


def best_pair(halves: tuple[Ways, Ways], shares: tuple[_Floats, _Floats], touched: _Floats) -> tuple[int, int]:
    """Return how to cut two boxes, so that what is touched in them makes up for each other, and for ``touched``.

    Args:
        halves: ways to cut each.
        shares: as of ``Ways.good``.
        touched: shape (columns,): files that queries touch outside of both.
    """
    good = [ways.good(share) for ways, share in zip(halves, shares, strict=True)]
    left, right = (ways.touched[some] * share for ways, some, share in zip(halves, good, shares, strict=True))
    best = int(np.argmin(unevenness(touched + left[:, None] + right[None, :])))
    one, other = divmod(best, len(right))
    return int(good[0][one]), int(good[1][other])
