"""How few files an equality query can touch in a box that is cut into a few files: every good way to cut it.

A box whose values are uniform and independent, cut in two at a share a/f of one column, leaves two boxes of a and f - a
files. If a query on column c touches on average l[c] files of the left and r[c] of the right box, then it touches
a/f l[c] + (f-a)/f r[c] files where c is the cut column, and l[c] + r[c] otherwise. For small f all ways can be tried:
eight files of two columns are best cut into slabs of 3, 3 and 2 files (2.75 and 3), not into halves (2 and 4).
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MOST_FILES = 16
MOST_COLUMNS = 4
"""Beyond these, there are too many ways to try, and halves are nearly as good."""

_MOST_WAYS = 300
_MOST_TRIED = 3000
_AS_GOOD = 1.005  # ways that differ by less in every column are one
_EVENNESS = 0.2  # how much the worst column counts beside the geometric mean of all


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

    touched: npt.NDArray[np.float64]
    column: npt.NDArray[np.int32]
    left_files: npt.NDArray[np.int32]
    left_way: npt.NDArray[np.int32]
    right_way: npt.NDArray[np.int32]


def known(columns: int, files: int) -> bool:
    """Tell whether ``ways`` are to be asked: can they list all, and do these differ?

    Cuts of one column all come to the same, and so halves are best, which make the flattest tree.
    """
    return 1 < columns <= MOST_COLUMNS and files <= MOST_FILES


@functools.cache
def ways(columns: int, files: int) -> Ways:
    """Return ways to cut a box into ``files`` files that no other way beats for every column, the best 300."""
    if files == 1:
        none = np.full(1, -1, np.int32)
        return Ways(np.ones((1, columns)), none, np.ones(1, np.int32), none, none)
    found: list[npt.NDArray[np.float64]] = []
    cuts: list[npt.NDArray[np.int64]] = []
    for column, left in itertools.product(range(columns), range(1, files // 2 + 1)):
        one, other = ways(columns, left).touched, ways(columns, files - left).touched
        both = one[:, None, :] + other[None, :, :]
        both[..., column] = (left * one[:, None, column] + (files - left) * other[None, :, column]) / files
        both = both.reshape(-1, columns)
        best = _best(both, _MOST_WAYS)
        found.append(both[best])
        halves = np.divmod(best, len(other))
        cuts.append(np.stack([np.full(len(best), column), np.full(len(best), left), *halves], axis=1))
    touched = np.concatenate(found)
    keep = _unbeaten(touched, _best(touched, _MOST_TRIED))
    column_of, left_files, left_way, right_way = np.concatenate(cuts)[keep].astype(np.int32).T
    return Ways(touched[keep], column_of, left_files, left_way, right_way)


def _best(touched: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.int64]:
    """Return the places of the best ways, the best first.

    A grid of a files by b files has the same geometric mean whatever a and b are, so that a way which serves one column
    badly is kept for a box in which its other half makes up for it.
    """
    # by column, because numpy reduces the short axis of a long array slowly
    by_column = list(touched.T)
    score = functools.reduce(np.multiply, by_column)
    score *= functools.reduce(np.maximum, by_column) ** (len(by_column) * _EVENNESS)
    some = np.argpartition(score, most)[:most] if len(score) > most else np.arange(len(score))
    return some[np.lexsort((some, score[some]))]


def _unbeaten(touched: npt.NDArray[np.float64], left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return which of the rows ``left`` no other of them undercuts in all columns, the first if they are many."""
    kept: list[int] = []
    rest = np.ascontiguousarray(touched[left].T)
    while len(left) and len(kept) < _MOST_WAYS:
        kept.append(int(left[0]))
        beaten = functools.reduce(np.logical_and, (values[0] <= values * _AS_GOOD for values in rest))
        left, rest = left[~beaten], rest[:, ~beaten]
    return np.asarray(kept, dtype=np.int64)
