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

_MOST_WAYS = 160
_AS_GOOD = 1.005  # ways that differ by less in every column are one


@dataclass(frozen=True)
class Ways:
    """Ways to cut a box into files.

    Attributes:
        touched: shape (ways, columns): files that an equality query on each column touches on average.
        column: shape (ways,): the column of the first cut.
        left_files: shape (ways,): how many of the files lie left of it.
    """

    touched: npt.NDArray[np.float64]
    column: npt.NDArray[np.int32]
    left_files: npt.NDArray[np.int32]


def known(columns: int, files: int) -> bool:
    """Tell whether ``ways`` can list them."""
    return columns <= MOST_COLUMNS and files <= MOST_FILES


@functools.cache
def ways(columns: int, files: int) -> Ways:
    """Return ways to cut a box into ``files`` files that no other way beats for every column, the evenest 160."""
    if files == 1:
        return Ways(np.ones((1, columns)), np.full(1, -1, np.int32), np.ones(1, np.int32))
    found: list[npt.NDArray[np.float64]] = []
    first: list[tuple[int, int]] = []
    for column, left in itertools.product(range(columns), range(1, files // 2 + 1)):
        one, other = ways(columns, left).touched, ways(columns, files - left).touched
        both = one[:, None, :] + other[None, :, :]
        both[..., column] = (left * one[:, None, column] + (files - left) * other[None, :, column]) / files
        both = _evenest(both.reshape(-1, columns))
        found.append(both)
        first += [(column, left)] * len(both)
    touched = np.concatenate(found)
    keep = _unbeaten(touched)
    chosen = np.asarray(first, np.int32)[keep]
    return Ways(touched[keep], chosen[:, 0], chosen[:, 1])


def _evenest(touched: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the rows with the least mean and maximum, few enough to compare each with all."""
    score = touched.mean(axis=1) + touched.max(axis=1)
    return touched[np.argsort(score, kind="stable")[: 2 * _MOST_WAYS]]


def _unbeaten(touched: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the rows that no other row undercuts in all columns, the evenest if they are many."""
    kept: list[int] = []
    order = np.argsort(touched.mean(axis=1) + touched.max(axis=1), kind="stable")
    front = np.empty((_MOST_WAYS, touched.shape[1]))
    for row in order.tolist():
        if len(kept) == _MOST_WAYS:
            break
        if not (front[: len(kept)] <= touched[row] * _AS_GOOD).all(axis=1).any():
            front[len(kept)] = touched[row]
            kept.append(row)
    return np.asarray(kept, dtype=np.int64)
