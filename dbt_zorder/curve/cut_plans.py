"""How few files an equality query can touch in a box that is cut into a few files: good ways to cut it.

A box whose values are uniform and independent, cut in two at a share a/f of one column, leaves two boxes of a and f - a
files. If a query on column c touches on average l[c] files of the left and r[c] of the right box, then it touches
a/f l[c] + (f-a)/f r[c] files where c is the cut column, and l[c] + r[c] otherwise. Eight files of two columns are best
cut into slabs of 3, 3 and 2 files (2.75 and 3), not into halves (2 and 4).

Which way is good depends on the box: of one that is wide in one column, that column is to be cut first. So the best way
is sought for boxes of many shapes; their halves are boxes, too, whose best ways are known by then. Two are kept of each
shape, the best by the sum over columns and the best by the worst of them: two halves may make up for each other.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.cut_choice import Ways, unevenness

_MOST_FILES = {2: 16, 3: 48, 4: 48}
"""By columns, of more than four there are too many ways, and halves are nearly as good. Skewed values keep to a plan of
many files badly, above all those of two columns."""
_ASPECTS = np.log([1, 1.1, 1.25, 1.45, 1.7, 2, 2.5, 3.2, 4.5, 8, 16, 32])
"""How many times as wide as its narrowest column a box can be in another one: one that is cut into 48 slabs is best cut
so if it is 32 times as wide."""
_ALL_CUTS = 16  # files: of more, about a quarter is cut off at least

_Floats = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int64]


def known(columns: int, files: int) -> bool:
    """Tell whether ``ways`` are to be asked.

    Cuts of one column all come to the same, and so halves are best, which make the flattest tree.
    """
    return files <= _MOST_FILES.get(columns, 0)


@functools.cache
def ways(columns: int, files: int) -> Ways:
    """Return good ways to cut a box into ``files`` files, for boxes of every shape."""
    found = _turned(_found(columns, files), columns)
    for values in vars(found).values():
        values.setflags(write=False)  # all callers have the same
    return found


@dataclass(frozen=True)
class _Shapes:
    """The shapes of boxes whose columns stand in the order of their widths, the narrowest first.

    Attributes:
        widths: shape (shapes, columns): logarithms; the first is 0.
        number: by the place of every other width in ``_ASPECTS``, which of the shapes it is.
    """

    widths: _Floats
    number: _Numbers

    @classmethod
    @functools.cache
    def of(cls, columns: int) -> _Shapes:
        """Return all shapes of boxes of so many columns."""
        places = list(itertools.combinations_with_replacement(range(len(_ASPECTS)), columns - 1))
        steps = np.asarray(places).T
        number = np.zeros((len(_ASPECTS),) * (columns - 1), np.int64)
        number[tuple(steps)] = np.arange(len(places))
        return cls(np.concatenate([np.zeros((1, len(places))), _ASPECTS[steps]]).T, number)

    def nearest(self, widths: _Floats) -> tuple[_Numbers, _Numbers]:
        """Return the shapes of boxes of any order of columns, by their logarithms of widths, and that order."""
        order = np.argsort(widths, axis=-1, kind="stable")
        ordered = np.take_along_axis(widths, order, axis=-1)
        steps = np.searchsorted((_ASPECTS[1:] + _ASPECTS[:-1]) / 2, ordered[..., 1:] - ordered[..., :1])
        return self.number[tuple(np.moveaxis(steps, -1, 0))], order


@dataclass(frozen=True)
class _Halves:
    """One half of every way.

    Attributes:
        files: shape (ways,): how many it is cut into.
        way: shape (ways,): how, a place among the ways that are found for as many.
        order: shape (ways, columns): its columns, the narrowest first, as that way has them.
    """

    files: _Numbers
    way: _Numbers
    order: _Numbers


@dataclass(frozen=True)
class _Found:
    """Ways to cut boxes of all ``_Shapes``: a way of each that is best by the sum, then those best by the worst column.

    Attributes:
        touched: shape (ways, columns).
        column: shape (ways,): of the first cut.
        halves: left and right of it.
        distinct: which of the ways differ.
        like: for each way its like among these.
    """

    touched: _Floats
    column: _Numbers
    halves: tuple[_Halves, ...]
    distinct: _Numbers
    like: _Numbers

    @classmethod
    def of(cls, touched: _Floats, column: _Numbers, halves: tuple[_Halves, ...]) -> _Found:
        """Return them with those that differ."""
        _, distinct, like = np.unique(touched.round(9), axis=0, return_index=True, return_inverse=True)
        return cls(touched, column, halves, distinct, like.ravel())


@functools.cache
def _found(columns: int, files: int) -> _Found:
    """Return the best ways to cut boxes of all shapes, found by those to cut their halves."""
    shapes = _Shapes.of(columns)
    number = np.arange(len(shapes.widths))
    if files == 1:
        return _Found.of(np.ones((2 * len(number), columns)), np.full(2 * len(number), -1), ())
    left_files = np.arange(1 if files <= _ALL_CUTS else files // 4, files // 2 + 1)
    # axes: files of the left half, shape, column of the cut, column
    share = (left_files / files)[:, None, None, None]
    is_cut = np.eye(columns, dtype=bool)
    widths = shapes.widths[:, None, :]
    halves_known = []
    for counts, part in ((left_files, share), (files - left_files, 1 - share)):
        shape, order = shapes.nearest(widths + np.where(is_cut, np.log(part), 0.0))
        halves_known.append((counts, shape, order, _touched_by(counts, shape, order)))
    one, other = (touched for *_, touched in halves_known)
    one, other = one[:, None], other[None, :]
    touched = np.where(is_cut, share * one + (1 - share) * other, one + other)
    expected = touched * np.exp(widths)
    best = []
    for cost in (expected.sum(axis=-1), unevenness(expected)):
        by_shape = np.moveaxis(cost, 3, 0).reshape(len(number), -1)
        best.append(np.unravel_index(by_shape.argmin(axis=1), (2, 2, len(left_files), columns)))
    *measures, cut, column = (np.concatenate(places) for places in zip(*best, strict=True))
    place = (cut, np.tile(number, 2), column)
    halves = [
        _Halves(counts[cut], shape[place] + len(number) * measure, order[place])
        for (counts, shape, order, _), measure in zip(halves_known, measures, strict=True)
    ]
    return _Found.of(touched[(*measures, *place)], column, tuple(halves))


def _touched_by(files: _Numbers, shape: _Numbers, order: _Numbers) -> _Floats:
    """Return the files touched in halves that are cut by the way that is best by the sum, then by the worst column.

    Args:
        files: of a half, for the first axis of the others.
        shape: of the half.
        order: its columns, the narrowest first.
    """
    columns = order.shape[-1]
    of_files = np.stack([_found(columns, int(count)).touched for count in files])
    by_measure = of_files.reshape(len(files), 2, -1, columns).swapaxes(0, 1)
    touched = np.empty((2, *order.shape))
    rows = np.arange(len(files))[:, None, None]
    for found, of_measure in zip(touched, by_measure, strict=True):
        np.put_along_axis(found, order, of_measure[rows, shape], axis=-1)
    return touched


def _turned(found: _Found, columns: int) -> Ways:
    """Return the distinct ways, each for every order of a box's columns."""
    if not found.halves:
        none = np.full(1, -1)
        return Ways(np.ones((1, columns)), none, np.ones(1, np.int64), none, none)
    turns = np.asarray(list(itertools.permutations(range(columns))))  # from a column's place to its number
    number_of = np.zeros((columns,) * columns, np.int64)
    number_of[tuple(turns.T)] = np.arange(len(turns))
    kept = found.distinct
    touched = np.empty((len(turns), len(kept), columns))
    np.put_along_axis(touched, np.broadcast_to(turns[:, None], touched.shape), found.touched[kept][None], axis=-1)
    further = []
    for half in found.halves:
        turn = number_of[tuple(np.moveaxis(turns[:, half.order[kept]], -1, 0))]
        way = np.zeros(turn.shape, np.int64)
        for files in np.unique(half.files[kept]):
            of_half = _found(columns, int(files))
            here = half.files[kept] == files
            if files > 1:
                way[:, here] = turn[:, here] * len(of_half.distinct) + of_half.like[half.way[kept[here]]]
        further.append(way.ravel())
    left_files = np.tile(found.halves[0].files[kept], len(turns))
    return Ways(touched.reshape(-1, columns), turns[:, found.column[kept]].ravel(), left_files, *further)
