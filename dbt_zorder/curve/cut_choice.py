"""Ways to cut a box into a few files, and which of them to take where a box, or two halves of one, stand in a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

AS_GOOD = 0.03  # cuts and ways whose sums over columns differ by less are as good as each other

_SQUARINGS = 4  # columns are added up by their sixteenth powers, so that the worst counts most
_OTHERS = 0.01  # how much the sum counts beside that
_MOST_PAIRED = 100  # of the ways to cut either half
_MOST_BEGUN = 300  # of the ways whose first cut is tried
_FEW = 40  # are all paired, whether they differ or not
_ALIKE = 0.1  # the step, by logarithm, of files touched: ways that are in one step by every column are alike
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
        """Return the places of ways that touch hardly more in sum than the best, the best first.

        Of many, one of those that touch about as many of every column: most are one way with its cuts in another order.

        Args:
            shares: shape (columns,): how much each counts, by the width of the box or otherwise.
        """
        good = self._all_good(shares)
        if len(good) <= _FEW:
            return good
        # ones stand at the edge of a step
        steps = np.floor(np.log(self.touched[good]) / _ALIKE + _TIE).astype(np.int64)
        _, first = np.unique(steps, axis=0, return_index=True)
        return good[np.sort(first)[:_MOST_PAIRED]]

    def first_cuts(self, shares: _Floats) -> list[tuple[int, int]]:
        """Return columns of the cuts that good ways begin with, and files of the smaller half.

        Those of ways that are alike, too: values may allow the cut of one column where they allow none of another.
        """
        good = self._all_good(shares)[:_MOST_BEGUN]
        return sorted(set(zip(self.column[good].tolist(), self.left_files[good].tolist(), strict=True)))

    def _all_good(self, shares: _Floats) -> _Numbers:
        sums = (self.touched * shares).sum(axis=1)
        good = np.flatnonzero(sums <= sums.min() * (1 + AS_GOOD))
        return good[np.argsort(sums[good], kind="stable")]


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
