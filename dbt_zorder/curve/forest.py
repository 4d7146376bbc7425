"""A k-d tree that first cuts a table into files and then goes on to order the rows inside each.

Going down the tree, a row takes one bit a level: is its value on the level's column at or above the cut? The bits read
together are a Morton key of conditional ranks: Z-order whose grid follows the data (Bentley 1975 for the tree,
Hudi RFC-28 for boundaries in place of raw bits). The first levels choose the file, the rest the place inside it.

There is one tree a table partition, so the trees are a forest; an unpartitioned table is a forest of one. Level l of a
forest of T trees has T * 2^l nodes, and node n has the children 2n and 2n + 1. A node without a cut sends all to 2n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int32]
"""Shape (rows, columns): 0 for NULL, else the dense rank of the value among the sample, from 1."""

_BALANCED = 0.15  # a cut whose fuller side has up to 15% more rows a file than its share counts as balanced
_EXTRA_DEPTH = 4  # a tree may be this much deeper than a balanced one before the rest is left to a hash
_SMALLEST_CELL = 4  # sampled rows below which a cell inside a file is not cut further


@dataclass(frozen=True)
class Forest:
    """The cuts of all trees, and which files the cells of the last file level are.

    Attributes:
        trees: number of trees.
        cuts: one int32 array a level, of shape (columns, trees * 2^level): a row of rank >= cut goes right; 0 is no cut.
        file_levels: the levels before this one choose the file.
        first_file: shape (trees * 2^file_levels,): number of the first file of each cell.
        file_count: the same shape: over how many files a hash spreads the rows of a cell; 1 unless no column could
            cut it.
        files: number of files in all.
    """

    trees: int
    cuts: tuple[npt.NDArray[np.int32], ...]
    file_levels: int
    first_file: npt.NDArray[np.int32]
    file_count: npt.NDArray[np.int32]
    files: int


def grow(
    ranks: Ranks,
    tree_of_row: npt.NDArray[np.int32],
    files_of_tree: Sequence[int],
    order_levels: int,
    weights: Sequence[float] | None = None,
) -> Forest:
    """Grow one tree a partition over a sample.

    Args:
        ranks: the sampled rows, see ``Ranks``.
        tree_of_row: shape (rows,): the tree that each row belongs to.
        files_of_tree: number of files that each tree is cut into, at least 1.
        order_levels: levels below the file.
        weights: one a column, how much its filters count; all equal by default.
    """
    trees = len(files_of_tree)
    columns = ranks.shape[1]
    grower = _Grower(ranks, np.asarray(weights or [1.0] * columns, dtype=np.float64))
    rows_by_tree = _group(tree_of_row, trees)
    nodes = [_Cell(rows_by_tree[tree], files_of_tree[tree]) for tree in range(trees)]
    cuts: list[npt.NDArray[np.int32]] = []
    most = max(files_of_tree)
    depth_limit = (most - 1).bit_length() + (_EXTRA_DEPTH if most > 1 else 0)
    while any(node.cuttable for node in nodes) and len(cuts) < depth_limit:
        level, nodes = grower.cut_level(nodes, for_files=True)
        if not level.any():
            nodes = nodes[::2]
            break
        cuts.append(level)
    file_levels = len(cuts)
    counts = np.asarray([node.files for node in nodes], dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
    for _ in range(order_levels):
        level, nodes = grower.cut_level(nodes, for_files=False)
        if not level.any():
            break
        cuts.append(level)
    return Forest(trees, tuple(cuts), file_levels, first, np.maximum(counts, 1), int(counts.sum()))


def descend(forest: Forest, ranks: Ranks, tree_of_row: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the cell of every row at the last level: the scalar reference of the descent that Spark runs."""
    node = tree_of_row.astype(np.int64)
    for level in forest.cuts:
        here = level[:, node]
        right = ((here > 0) & (ranks.T >= here)).any(axis=0)
        node = 2 * node + right
    return node


@dataclass
class _Cell:
    """Rows of the sample in one node, and the number of files that are to hold them."""

    rows: npt.NDArray[np.int64]
    files: int
    exhausted: bool = False

    @property
    def cuttable(self) -> bool:
        return self.files > 1 and not self.exhausted


@dataclass(frozen=True)
class _Cut:
    column: int
    rank: int
    left_files: int
    imbalance: float


class _Grower:
    """Cuts cells so that the sum over columns of the files that an equality filter touches stays smallest.

    The share of rows whose value lies between a cell's least and greatest is the chance that such a filter touches the
    cell. Cutting a column leaves its own sum as it is and nearly doubles every other, so the column with the widest
    share is cut; for columns that go together the true shares of both halves are counted.
    """

    def __init__(self, ranks: Ranks, weights: npt.NDArray[np.float64]) -> None:
        self._ranks = ranks
        self._weights = weights
        self._mass = [_cumulative_mass(ranks[:, column]) for column in range(ranks.shape[1])]

    def cut_level(self, cells: list[_Cell], *, for_files: bool) -> tuple[npt.NDArray[np.int32], list[_Cell]]:
        """Cut every cell once; return the level's cuts and the children, two a cell."""
        level = np.zeros((self._ranks.shape[1], len(cells)), dtype=np.int32)
        children: list[_Cell] = []
        for number, cell in enumerate(cells):
            cut = self._best_cut(cell, for_files=for_files)
            if cut is None:
                # what no column can cut stays one cell; the right child exists only so that nodes count in twos
                children += [_Cell(cell.rows, cell.files, True), _Cell(cell.rows[:0], 0, True)]
                continue
            level[cut.column, number] = cut.rank
            right = self._ranks[cell.rows, cut.column] >= cut.rank
            children.append(_Cell(cell.rows[~right], cut.left_files if for_files else cell.files))
            children.append(_Cell(cell.rows[right], cell.files - cut.left_files if for_files else cell.files))
        return level, children

    def _best_cut(self, cell: _Cell, *, for_files: bool) -> _Cut | None:
        if cell.exhausted or (for_files and cell.files < 2) or (not for_files and len(cell.rows) < _SMALLEST_CELL):
            return None
        here = self._ranks[cell.rows]
        found = [
            cut
            for column in range(here.shape[1])
            if (cut := _balanced_cut(here[:, column], column, cell.files if for_files else 2)) is not None
        ]
        if not found:
            return None
        tolerance = max(_BALANCED, min(cut.imbalance for cut in found))
        balanced = [cut for cut in found if cut.imbalance <= tolerance]
        return min(balanced, key=lambda cut: (self._touched(here, cut), cut.column))

    def _touched(self, here: Ranks, cut: _Cut) -> float:
        """Return the weighted sum over columns of both halves' shares."""
        right = here[:, cut.column] >= cut.rank
        total = 0.0
        for half in (here[~right], here[right]):
            for column, mass in enumerate(self._mass):
                values = half[:, column]
                values = values[values > 0]
                if len(values):
                    total += self._weights[column] * float(mass[values.max()] - mass[values.min() - 1])
        return total


def _balanced_cut(values: npt.NDArray[np.int32], column: int, files: int) -> _Cut | None:
    """Return the cut that shares out rows and files most evenly, nearest the middle among equals; None for one value."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return None
    left_share = np.cumsum(counts)[:-1] / len(values)
    left_files = np.clip(np.rint(left_share * files), 1, files - 1)
    imbalance = np.maximum(left_share / left_files, (1 - left_share) / (files - left_files)) * files - 1
    best = int(np.argmin(imbalance + np.abs(left_files / files - 0.5)))
    return _Cut(column, int(distinct[best + 1]), int(left_files[best]), float(imbalance[best]))


def _cumulative_mass(values: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return m with m[r] the share of non-null rows whose rank is at most r; m[0] is 0."""
    counts = np.bincount(values, minlength=1).astype(np.float64)
    counts[0] = 0.0
    total = counts.sum()
    return np.asarray(np.cumsum(counts) / (total if total else 1.0))


def _group(tree_of_row: npt.NDArray[np.int32], trees: int) -> list[npt.NDArray[np.int64]]:
    order = np.argsort(tree_of_row, kind="stable")
    edges = np.searchsorted(tree_of_row[order], np.arange(trees + 1))
    return [order[edges[tree] : edges[tree + 1]] for tree in range(trees)]
