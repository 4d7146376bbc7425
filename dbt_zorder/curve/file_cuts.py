"""Cuts of a sample into files: the levels of a tree that choose the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.cut_choice import AS_GOOD, CutPlans, best_pair, unevenness
from dbt_zorder.curve.cut_plans import has_plans, plans_for
from dbt_zorder.curve.ranks import Mass, Ranks

_BALANCED = 0.15  # a cut counts as balanced if neither side has above 15% more rows per file than its share
_LAST_FILES = 3
_BALANCED_LAST = 0.3  # limit for a plan's last cuts, as no further cut adds to their unevenness
_TOO_UNEVEN = 0.4  # above this, a hash serves better than any cut because it fills files evenly
_HARDLY_UNEVEN = 0.02  # up to this, a cut of an overfull cell is as good as a hash
_FEW_ROWS = 8  # rows per file below which a hash is less even than any cut and leaves files empty
_AS_PLANNED = 0.1  # relative difference up to which bounds count as those that a plan expects


@dataclass(frozen=True)
class _Plan:
    """Plan to cut a cell down to its files, made while the cell was part of a larger one.

    Attributes:
        number: number of the plan in ``plans_for`` for the cell's number of files.
        shares: chance for each column that an equality query's value lies within the cell's bounds. The chances assume
            independent columns; the plan is void where the cell's bounds differ.
    """

    number: int
    shares: npt.NDArray[np.float64]


@dataclass
class FileCell:
    """Sampled rows of one node, and the number of files for them.

    Attributes:
        node: number of the node in its level.
        rows: positions of the rows in the sample.
        files: number of files.
        exhausted: whether no cut can separate the rows.
        plan: plan to cut the cell, if there is one.
        fill: rows per file, as a ratio to those of the whole tree.
    """

    node: int
    rows: npt.NDArray[np.int64]
    files: int
    exhausted: bool = False
    plan: _Plan | None = None
    fill: float = 1.0

    @property
    def cuttable(self) -> bool:
        """Whether the cell needs more than one file, and a column may separate its rows."""
        return self.files > 1 and not self.exhausted

    def child(self, right: int, inside: npt.NDArray[np.bool_], files: int, plan: _Plan | None) -> FileCell:
        """Return the left or right child with its part of the rows and of the files."""
        rows = self.rows[inside]
        fill = self.fill * len(rows) / len(self.rows) * self.files / files
        return FileCell(2 * self.node + right, rows, files, plan=plan, fill=fill)


@dataclass(frozen=True)
class _Axis:
    """Positions at which one column of a cell can be cut.

    Attributes:
        column: number of the column.
        ranks: distinct ranks that can begin the right half, ascending.
        left_rows: number of the cell's rows to the left of each rank.
        rows: number of rows of the cell.
    """

    column: int
    ranks: npt.NDArray[np.int32]
    left_rows: npt.NDArray[np.int64]
    rows: int

    @classmethod
    def of(cls, values: npt.NDArray[np.int32], column: int) -> _Axis:
        distinct, counts = np.unique(values, return_counts=True)
        return cls(column, distinct[1:], np.cumsum(counts)[:-1], len(values))


@dataclass(frozen=True)
class _Cut:
    column: int
    rank: int
    left_files: int
    imbalance: float
    plans: tuple[_Plan, _Plan] | None = None


class Splitter:
    """Cuts cells so that the files touched by equality filters stay fewest, summed over all columns.

    A filter touches a cell if its value lies between the cell's least and greatest. The chance of this is the share of
    rows in that range. A cut leaves the sum of its own column as it is and nearly doubles the sum of every other
    column. Therefore the column with the widest share is cut. For correlated columns the true shares of both halves
    count.
    """

    def __init__(self, ranks: Ranks, mass: Sequence[Mass], weights: npt.NDArray[np.float64]) -> None:
        self._ranks = ranks
        self._mass = mass
        self._weights = weights

    def cut_level(
        self, cells: Sequence[FileCell], nodes: int, levels: int
    ) -> tuple[npt.NDArray[np.int32], list[FileCell]]:
        """Cut every cell once; return the cuts of the level, and the children that become files.

        Args:
            cells: all cuttable cells, in the order of their nodes.
            nodes: number of nodes in the level.
            levels: number of levels that remain, including this one.
        """
        level = np.zeros((self._ranks.shape[1], nodes), dtype=np.int32)
        children: list[FileCell] = []
        touched = np.zeros(self._ranks.shape[1])
        for cell in cells:
            cut = self._best_cut(cell, touched, 1 << levels - 1)
            if cut is None:
                # a cell that no column can cut stays whole; its right child exists only because nodes have two children
                children.append(replace(cell, node=2 * cell.node, exhausted=True))
                continue
            level[cut.column, cell.node] = cut.rank
            right = self._ranks[cell.rows, cut.column] >= cut.rank
            one, other = cut.plans or (None, None)
            children.append(cell.child(0, ~right, cut.left_files, one))
            children.append(cell.child(1, right, cell.files - cut.left_files, other))
        return level, children

    def _best_cut(self, cell: FileCell, touched: npt.NDArray[np.float64], most: int) -> _Cut | None:
        """Return the cut that touches fewest files, and add its touched files to ``touched``.

        Args:
            cell: the cell to cut.
            touched: files that queries touch so far, shape (columns,); changed in place.
            most: files of a half that the remaining levels can separate. A cut keeps to it if any cut can.
        """

        def fits(cut: _Cut) -> bool:
            return max(cut.left_files, cell.files - cut.left_files) <= most

        here = self._ranks[cell.rows]
        axes = [_Axis.of(here[:, column], column) for column in range(here.shape[1])]
        found = [cut for axis in axes if (cut := _cut_at(axis, cell))]
        evenest = min((cut.imbalance for cut in found), default=np.inf)
        few = cell.files <= len(here) < _FEW_ROWS * cell.files
        if evenest >= (np.inf if few else _TOO_UNEVEN):
            return None
        tolerance = max(_BALANCED, evenest)
        found = [cut for cut in found if cut.imbalance <= tolerance]
        found = [cut for cut in found if fits(cut)] or found
        planned, follow = self._planned_cuts(here, axes, cell)
        last = tolerance if cell.files > _LAST_FILES else max(tolerance, _BALANCED_LAST)
        planned = [cut for cut in planned if cut.imbalance <= last and fits(cut)]
        found = planned if planned and follow else found + planned
        scored = [self._with_plans(here, cut, cell.files, touched) for cut in found]
        enough = min(float(shares.sum()) for shares, _ in scored) * (1 + AS_GOOD)
        equals = [(shares, cut) for shares, cut in scored if shares.sum() <= enough]
        # the last level may not cut every column once, so balance the columns across its cells
        shares, best = min(equals, key=lambda scored: float(unevenness(touched + scored[0])))
        touched += shares
        return best

    def _planned_cuts(self, here: Ranks, axes: Sequence[_Axis], cell: FileCell) -> tuple[list[_Cut], bool]:
        """Return the first cuts of good plans, which need not be halves.

        If the cell has a plan and its bounds are as expected, return the first cut of that plan alone. The second value
        is true in this case.
        """
        files = cell.files
        if files < 2 or not has_plans(here.shape[1], files):
            return [], False
        plans = plans_for(here.shape[1], files)
        shares = self._shares(here)
        plan = cell.plan
        if plan is not None and not (np.abs(shares - plan.shares) <= _AS_PLANNED * shares).all():
            plan = None
        first_cuts = (
            _first_cuts(plans, shares, files) if plan is None else _first_cut_of_plan(plans, plan.number, shares, files)
        )
        return [
            replace(cut, plans=half_plans)
            for column, left, half_plans in first_cuts
            if (cut := _cut_at(axes[column], cell, left)) is not None
        ], plan is not None

    def _with_plans(
        self, here: Ranks, cut: _Cut, files: int, touched: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], _Cut]:
        """Return the files that both halves add to an equality query, by column, and the cut with plans.

        If the halves can be planned, choose and count a plan for each. Otherwise each half counts as one file, which
        serves as well to compare cuts.
        """
        behind = here[:, cut.column] >= cut.rank
        shares = (self._shares(here[~behind]), self._shares(here[behind]))
        if not has_plans(len(self._mass), files):
            return shares[0] + shares[1], cut
        left, right = (plans_for(len(self._mass), count) for count in (cut.left_files, files - cut.left_files))
        if cut.plans is None:
            one, other = map(_Plan, best_pair((left, right), shares, touched), shares)
            cut = replace(cut, plans=(one, other))
        else:
            one, other = cut.plans
        return left.touched[one.number] * shares[0] + right.touched[other.number] * shares[1], cut

    def _shares(self, half: Ranks) -> npt.NDArray[np.float64]:
        """Return for each column the weighted chance that a query's value lies within a cell's bounds."""
        shares = np.zeros(len(self._mass))
        for column, mass in enumerate(self._mass):
            values = half[:, column]
            values = values[values > 0]
            if len(values):
                shares[column] = self._weights[column] * float(mass[values.max()] - mass[values.min() - 1])
        return shares


_FirstCut = tuple[int, int, tuple[_Plan, _Plan] | None]
"""Column of a cut, number of files left of it, and plans for both halves if there are any."""


def _first_cut_of_plan(plans: CutPlans, number: int, shares: npt.NDArray[np.float64], files: int) -> list[_FirstCut]:
    """Return the first cut of a plan, and its mirror image."""
    column, left = int(plans.column[number]), int(plans.left_files[number])
    halves = []
    for count, further in ((left, plans.left_plan[number]), (files - left, plans.right_plan[number])):
        expected = shares.copy()
        expected[column] *= count / files
        halves.append(_Plan(int(further), expected))
    return [(column, left, (halves[0], halves[1])), (column, files - left, (halves[1], halves[0]))]


def _first_cuts(plans: CutPlans, shares: npt.NDArray[np.float64], files: int) -> list[_FirstCut]:
    """Return the first cuts of good plans, and their mirror images."""
    return [
        (column, count, None)
        for column, left in plans.first_cuts(shares)
        for count in dict.fromkeys((left, files - left))
    ]


def _cut_at(axis: _Axis, cell: FileCell, left_files: int | None = None) -> _Cut | None:
    """Return the most even cut with ``left_files`` files on the left; if None, with any number near half.

    Return None for a single value. The imbalance is infinite if a half has fewer rows than files although the cell has
    enough rows.
    """
    if not len(axis.left_rows):
        return None
    files = cell.files
    left_share = axis.left_rows / axis.rows
    left = np.clip(np.rint(left_share * files), 1, files - 1) if left_files is None else np.full(1, float(left_files))
    left_fill = left_share / left * files
    right_fill = (1 - left_share) / (files - left) * files
    fuller = np.maximum(left_fill, right_fill)
    # a file that is too small by a factor counts like one that is too large by it
    imbalance = np.maximum(fuller, 1 / np.minimum(left_fill, right_fill)) - 1
    # imbalances of consecutive levels multiply
    in_all = cell.fill * fuller - 1
    imbalance = np.where(
        (in_all > _TOO_UNEVEN) & (fuller > 1 + _HARDLY_UNEVEN), np.maximum(imbalance, in_all), imbalance
    )
    if axis.rows >= files:
        imbalance[(axis.left_rows < left) | (axis.rows - axis.left_rows < files - left)] = np.inf
    best = int(np.argmin(imbalance + (np.abs(left / files - 0.5) if left_files is None else 0)))
    left_files = int(np.broadcast_to(left, imbalance.shape)[best])
    return _Cut(axis.column, int(axis.ranks[best]), left_files, float(imbalance[best]))
