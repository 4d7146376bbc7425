"""Plans to cut a box into a few files, and the choice among them for one box or for two halves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

AS_GOOD = 0.03  # cuts and plans whose sums over columns differ by a smaller ratio count as equal

_SQUARINGS = 4  # the sum over columns uses sixteenth powers, which the worst column dominates
_SUM_WEIGHT = 0.01  # weight of the plain sum beside it
_MOST_PAIRED = 100  # plans of each half that are paired
_MOST_FIRST_CUTS = 300  # plans whose first cut is tried
_FEW = 40  # up to this number, all plans are paired, even similar ones
_SIMILAR = 0.1  # logarithmic step of touched files: plans in the same step for every column are similar
_TIE = 1e-9

_Floats = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CutPlans:
    """Plans to cut a box into files.

    Attributes:
        touched: mean number of files that an equality query on each column touches, shape (plans, columns).
        column: column of the first cut, shape (plans,).
        left_files: number of files left of the first cut, shape (plans,).
        left_plan: number of the left half's plan among the plans for its number of files, shape (plans,).
        right_plan: the same for the right half, shape (plans,).
    """

    touched: _Floats
    column: _Numbers
    left_files: _Numbers
    left_plan: _Numbers
    right_plan: _Numbers

    def good_plans(self, shares: _Floats) -> _Numbers:
        """Return the numbers of plans whose sum of touched files is close to the least, the best first.

        Return one plan of each group that touches about as many files in every column. Most plans of such a group are
        the same plan with its cuts in another order.

        Args:
            shares: weight of each column, for example the width of the box, shape (columns,).
        """
        good = self._all_good_plans(shares)
        if len(good) <= _FEW:
            return good
        # the logarithm of 1 lies at the edge of a step, where rounding would decide
        steps = np.floor(np.log(self.touched[good]) / _SIMILAR + _TIE).astype(np.int64)
        _, first = np.unique(steps, axis=0, return_index=True)
        return good[np.sort(first)[:_MOST_PAIRED]]

    def first_cuts(self, shares: _Floats) -> list[tuple[int, int]]:
        """Return the first cuts of good plans, as pairs of a column and the files of the smaller half.

        Similar plans count too, because the values may allow a cut of one column where they allow none of another.
        """
        good = self._all_good_plans(shares)[:_MOST_FIRST_CUTS]
        return sorted(set(zip(self.column[good].tolist(), self.left_files[good].tolist(), strict=True)))

    def _all_good_plans(self, shares: _Floats) -> _Numbers:
        sums = (self.touched * shares).sum(axis=1)
        good = np.flatnonzero(sums <= sums.min() * (1 + AS_GOOD))
        return good[np.argsort(sums[good], kind="stable")]


def unevenness(touched: _Floats) -> _Floats:
    """Return a measure of the touched files over the last axis, dominated by the worst column.

    The worst column alone would leave ties among the other columns undecided.
    """
    powers = touched
    for _ in range(_SQUARINGS):
        powers = powers * powers
    worst = powers.sum(axis=-1)
    for _ in range(_SQUARINGS):
        worst = np.sqrt(worst)
    return np.asarray(worst + _SUM_WEIGHT * touched.sum(axis=-1))


def best_pair(halves: tuple[CutPlans, CutPlans], shares: tuple[_Floats, _Floats], touched: _Floats) -> tuple[int, int]:
    """Return one plan for each of two boxes, so that their touched files compensate for each other.

    Args:
        halves: plans for each box.
        shares: weights of the columns for each box, see ``CutPlans.good_plans``.
        touched: files that queries touch outside of both boxes, shape (columns,).
    """
    good = [plans.good_plans(share) for plans, share in zip(halves, shares, strict=True)]
    left, right = (plans.touched[chosen] * share for plans, chosen, share in zip(halves, good, shares, strict=True))
    best = int(np.argmin(unevenness(touched + left[:, None] + right[None, :])))
    one, other = divmod(best, len(right))
    return int(good[0][one]), int(good[1][other])
