"""Plan how to cut a box into a few files so that an equality query touches as few of them as possible.

Assume a box of uniform and independent values. A cut at the share a/f of one column leaves boxes of a and f - a files.
Let a query on column c touch l[c] files of the left box and r[c] files of the right box on average. The query touches
a/f l[c] + (f-a)/f r[c] files if c is the cut column, and l[c] + r[c] files otherwise. Eight files over two columns are
best cut into slabs of 3, 3 and 2 files. Queries then touch 2.75 and 3 files; halves would give 2 and 4.

The best plan depends on the shape of the box: a box that is wide in one column is cut in that column first. Therefore
the search covers boxes of many shapes. The halves of a box are boxes too, and the search plans them first. It keeps two
plans for each shape: the best by the sum over columns, and the best by the worst column. It needs both because two
halves may compensate for each other.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.cut_choice import CutPlans, unevenness

_MOST_FILES = {2: 16, 3: 48, 4: 48}
"""Largest number of files that is planned, by number of columns.

Above four columns there are too many plans, and halves are nearly as good. Skewed values deviate from a plan of many
files, above all with two columns.
"""
_ASPECTS = np.log([1, 1.1, 1.25, 1.45, 1.7, 2, 2.5, 3.2, 4.5, 8, 16, 32])
"""Logarithms of how many times as wide as its narrowest column a box can be in another column.

A box that is 32 times as wide is best cut into 48 slabs, so wider boxes need no plans of their own.
"""
_ALL_CUTS = 16  # above this number of files, the smaller half has at least about a quarter of them

_Floats = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int64]


def has_plans(columns: int, files: int) -> bool:
    """Return whether ``plans_for`` has plans for this number of columns and files.

    All plans of a single column are equally good. Halves are then best because they give the flattest tree.
    """
    return files <= _MOST_FILES.get(columns, 0)


@functools.cache
def plans_for(columns: int, files: int) -> CutPlans:
    """Return good plans to cut a box into ``files`` files, for boxes of every shape."""
    found = _in_every_order(_shape_plans(columns, files), columns)
    for values in vars(found).values():
        values.setflags(write=False)  # the cache returns the same arrays to all callers
    return found


@dataclass(frozen=True)
class _Shapes:
    """Shapes of boxes whose columns are sorted by width, the narrowest first.

    Attributes:
        widths: logarithms of the widths, shape (shapes, columns); the first column is 0.
        number: number of each shape, indexed by the position of every other width in ``_ASPECTS``.
    """

    widths: _Floats
    number: _Numbers

    @classmethod
    @functools.cache
    def of(cls, columns: int) -> _Shapes:
        """Return all shapes of boxes with this number of columns."""
        places = list(itertools.combinations_with_replacement(range(len(_ASPECTS)), columns - 1))
        steps = np.asarray(places).T
        number = np.zeros((len(_ASPECTS),) * (columns - 1), np.int64)
        number[tuple(steps)] = np.arange(len(places))
        return cls(np.concatenate([np.zeros((1, len(places))), _ASPECTS[steps]]).T, number)

    def nearest(self, widths: _Floats) -> tuple[_Numbers, _Numbers]:
        """Return the nearest shape and the column order of each box, from its logarithms of widths."""
        order = np.argsort(widths, axis=-1, kind="stable")
        ordered = np.take_along_axis(widths, order, axis=-1)
        steps = np.searchsorted((_ASPECTS[1:] + _ASPECTS[:-1]) / 2, ordered[..., 1:] - ordered[..., :1])
        return self.number[tuple(np.moveaxis(steps, -1, 0))], order


@dataclass(frozen=True)
class _Halves:
    """One half of every plan.

    Attributes:
        files: number of files of the half, shape (plans,).
        plan: number of the half's plan among the plans for that number of files, shape (plans,).
        order: columns of the half from the narrowest to the widest, as its plan numbers them, shape (plans, columns).
    """

    files: _Numbers
    plan: _Numbers
    order: _Numbers


@dataclass(frozen=True)
class _ShapePlans:
    """Plans for boxes of all ``_Shapes``: first the best by the sum, then the best by the worst column.

    Attributes:
        touched: files that a query on each column touches, shape (plans, columns).
        column: column of the first cut, shape (plans,).
        halves: the left and the right halves.
        distinct: numbers of the plans that differ from each other.
        equal: position in ``distinct`` of each plan's equal, shape (plans,).
    """

    touched: _Floats
    column: _Numbers
    halves: tuple[_Halves, ...]
    distinct: _Numbers
    equal: _Numbers

    @classmethod
    def of(cls, touched: _Floats, column: _Numbers, halves: tuple[_Halves, ...]) -> _ShapePlans:
        """Return the plans together with the numbers of the distinct ones."""
        _, distinct, equal = np.unique(touched.round(9), axis=0, return_index=True, return_inverse=True)
        return cls(touched, column, halves, distinct, equal.ravel())


@functools.cache
def _shape_plans(columns: int, files: int) -> _ShapePlans:
    """Return the best plans for boxes of all shapes, built from the plans of their halves."""
    shapes = _Shapes.of(columns)
    number = np.arange(len(shapes.widths))
    if files == 1:
        return _ShapePlans.of(np.ones((2 * len(number), columns)), np.full(2 * len(number), -1), ())
    left_files = np.arange(1 if files <= _ALL_CUTS else files // 4, files // 2 + 1)
    # axes: files of the left half, shape, column of the cut, column
    share = (left_files / files)[:, None, None, None]
    is_cut = np.eye(columns, dtype=bool)
    widths = shapes.widths[:, None, :]
    half_plans = []
    for counts, part in ((left_files, share), (files - left_files, 1 - share)):
        shape, order = shapes.nearest(widths + np.where(is_cut, np.log(part), 0.0))
        half_plans.append((counts, shape, order, _touched_by(counts, shape, order)))
    one, other = (touched for *_, touched in half_plans)
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
        for (counts, shape, order, _), measure in zip(half_plans, measures, strict=True)
    ]
    return _ShapePlans.of(touched[(*measures, *place)], column, tuple(halves))


def _touched_by(files: _Numbers, shape: _Numbers, order: _Numbers) -> _Floats:
    """Return the files touched in halves, first for the best plan by the sum, then by the worst column.

    Args:
        files: number of files of each half, along the first axis of the other arguments.
        shape: number of each half's shape.
        order: columns of each half, the narrowest first.
    """
    columns = order.shape[-1]
    of_files = np.stack([_shape_plans(columns, int(count)).touched for count in files])
    by_measure = of_files.reshape(len(files), 2, -1, columns).swapaxes(0, 1)
    touched = np.empty((2, *order.shape))
    rows = np.arange(len(files))[:, None, None]
    for found, of_measure in zip(touched, by_measure, strict=True):
        np.put_along_axis(found, order, of_measure[rows, shape], axis=-1)
    return touched


def _in_every_order(found: _ShapePlans, columns: int) -> CutPlans:
    """Return the distinct plans, each for every order of a box's columns."""
    if not found.halves:
        none = np.full(1, -1)
        return CutPlans(np.ones((1, columns)), none, np.ones(1, np.int64), none, none)
    turns = np.asarray(list(itertools.permutations(range(columns))))  # maps a column's position to its number
    number_of = np.zeros((columns,) * columns, np.int64)
    number_of[tuple(turns.T)] = np.arange(len(turns))
    kept = found.distinct
    touched = np.empty((len(turns), len(kept), columns))
    np.put_along_axis(touched, np.broadcast_to(turns[:, None], touched.shape), found.touched[kept][None], axis=-1)
    further = []
    for half in found.halves:
        turn = number_of[tuple(np.moveaxis(turns[:, half.order[kept]], -1, 0))]
        plan = np.zeros(turn.shape, np.int64)
        for files in np.unique(half.files[kept]):
            of_half = _shape_plans(columns, int(files))
            here = half.files[kept] == files
            if files > 1:
                plan[:, here] = turn[:, here] * len(of_half.distinct) + of_half.equal[half.plan[kept[here]]]
        further.append(plan.ravel())
    left_files = np.tile(found.halves[0].files[kept], len(turns))
    return CutPlans(touched.reshape(-1, columns), turns[:, found.column[kept]].ravel(), left_files, *further)
