"""A k-d tree that first cuts a table into files and then orders the rows inside each file.

On its way down the tree, a row adds one bit on each level: whether its value in the level's column is at or above the
cut. Together the bits are a Morton key of conditional ranks: a Z-order whose grid follows the data. The tree is that of
Bentley 1975; boundaries in place of raw bits are those of Hudi RFC-28. The first levels choose the file. The other
levels choose the position inside the file.

Each table partition has one tree, so the trees are a forest; an unpartitioned table is a forest of one tree. Level l of
a forest of T trees has T * 2^l nodes, and node n has the children 2n and 2n + 1. A node without a cut sends all rows to
2n.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.cell_cuts import order_cells
from dbt_zorder.curve.file_cuts import FileCell, Splitter
from dbt_zorder.curve.ranks import Ranks, cumulative_mass

_LOG = logging.getLogger("dbt_zorder")

_EXTRA_DEPTH = 4  # levels that a tree may have beyond a balanced one before a hash splits the rest

_MOST_TEXT = 16 << 20
_CELL_TEXT = 10
"""Limits on the cuts as SQL text, in characters.

All trees together may have ``_MOST_TEXT`` characters. A cell counts ``_CELL_TEXT`` characters for each column and once
for its file. Even a cell without rows is written as ``null,`` on every level above it. A cut itself may be longer, up
to 344 characters of text, but there are at most as many cuts as files and the cells inside them. All trees are as deep
as the deepest one. Where one partition is much larger than many others, a hash therefore fills a part of its files, and
rows inside files have little or no order.
"""


@dataclass(frozen=True)
class Forest:
    """The cuts of all trees, and the files of the cells of the last file level.

    Attributes:
        trees: number of trees.
        cuts: one int32 array for each level, shape (columns, trees * 2^level). A row of rank >= cut goes right; 0 is no
            cut.
        file_levels: number of levels that choose the file; they come first.
        first_file: number of the first file of each cell, shape (trees * 2^file_levels,).
        file_count: number of files over which a hash spreads the rows of each cell, same shape. It is 1 unless no
            column could cut the cell.
        files: total number of files.
    """

    trees: int
    cuts: tuple[npt.NDArray[np.int32], ...]
    file_levels: int
    first_file: npt.NDArray[np.int32]
    file_count: npt.NDArray[np.int32]
    files: int

    @cached_property
    def steps(self) -> list[tuple[int | npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
        """The column that cuts each node and the node's cut, for each level.

        The column is a number if all nodes of the level share it. A node without a cut has a cut that no rank reaches.
        """
        steps: list[tuple[int | npt.NDArray[np.int64], npt.NDArray[np.int32]]] = []
        for level in self.cuts:
            column, cut = level.argmax(axis=0), level.max(axis=0)  # at most one column cuts a node
            cutting = np.unique(column[cut > 0])
            cut[cut == 0] = np.iinfo(np.int32).max
            steps.append((int(cutting[0]) if len(cutting) == 1 else column, cut))
        return steps


def grow(
    ranks: Ranks,
    tree_of_row: npt.NDArray[np.int32],
    files_of_tree: Sequence[int],
    order_levels: int,
    weights: Sequence[float] | None = None,
) -> Forest:
    """Grow one tree for each partition over a sample.

    Args:
        ranks: ranks of the sampled rows, see ``Ranks``.
        tree_of_row: tree of each row, shape (rows,).
        files_of_tree: number of files of each tree, at least 1.
        order_levels: number of levels below the file. The forest has fewer if its trees are many and deep.
        weights: weight of the filters on each column; all equal by default.
    """
    trees = len(files_of_tree)
    mass = [cumulative_mass(ranks[:, column]) for column in range(ranks.shape[1])]
    scale = np.asarray(weights or [1.0] * ranks.shape[1], dtype=np.float64)
    scale /= scale.max()  # only ratios count; powers of very large or small weights would be infinite or 0
    most = max(files_of_tree)
    most_cells = _MOST_TEXT // (_CELL_TEXT * (ranks.shape[1] + 1))
    depth = (most - 1).bit_length() + (_EXTRA_DEPTH if most > 1 else 0)
    allowed = min(depth, levels_within(most_cells, trees))
    grouped = zip(_group(tree_of_row, trees), files_of_tree, strict=True)
    roots = [FileCell(tree, rows, files) for tree, (rows, files) in enumerate(grouped)]
    cuts, cells, left = _cut_into_files(Splitter(ranks, mass, scale), roots, allowed)
    file_levels = len(cuts)
    if left and file_levels == allowed < depth:
        _warn_of_hash(trees, most, sum(cell.files for cell in left))
    # below its last cut, a cell always goes left
    places = ((cell.node << file_levels - level, cell) for level, cell in cells)
    placed = sorted(places, key=lambda place: place[0])
    nodes = np.asarray([node for node, _ in placed], dtype=np.int64)
    counts = np.zeros(trees << file_levels, dtype=np.int32)
    counts[nodes] = [cell.files for _, cell in placed]
    first = (np.cumsum(counts) - counts).astype(np.int32)
    rows = np.concatenate([cell.rows for _, cell in placed])
    cell_of_row = np.repeat(nodes, [len(cell.rows) for _, cell in placed])
    order_levels = min(order_levels, levels_within(most_cells, len(counts)))
    order = order_cells(ranks[rows], cell_of_row, len(counts), order_levels, mass, scale)
    return Forest(trees, (*cuts, *order), file_levels, first, np.maximum(counts, 1), int(counts.sum()))


def _cut_into_files(
    splitter: Splitter, roots: Sequence[FileCell], allowed: int
) -> tuple[list[npt.NDArray[np.int32]], list[tuple[int, FileCell]], list[FileCell]]:
    """Cut trees into files, with at most ``allowed`` levels.

    Returns:
        The cuts of each level, as in ``Forest``; the final cells, each with the number of levels above it; and those
        final cells that need more levels.
    """
    cuts: list[npt.NDArray[np.int32]] = []
    reached = list(roots)
    done: list[tuple[int, FileCell]] = []  # in a deep forest these far outnumber the cells that are cut further
    while True:
        done += [(len(cuts), cell) for cell in reached if not cell.cuttable]
        left = [cell for cell in reached if cell.cuttable]
        if not left or len(cuts) == allowed:
            break
        level, reached = splitter.cut_level(left, len(roots) << len(cuts), allowed - len(cuts))
        if not level.any():
            break
        cuts.append(level)
    return cuts, done + [(len(cuts), cell) for cell in left], left


def _warn_of_hash(trees: int, most: int, files: int) -> None:
    _LOG.warning(
        "%d of the files are filled by a hash and overlap: one of %d partitions has %d files, and cuts as deep as its "
        "own for all of them would be too many for a query. Larger files or fewer partitions avoid it.",
        files,
        trees,
        most,
    )


def levels_within(cells: int, nodes: int) -> int:
    """Return how many levels can follow a level of ``nodes`` nodes if the last may have ``cells`` cells."""
    return max(0, (cells // nodes).bit_length() - 1)


def descend(forest: Forest, ranks: Ranks, tree_of_row: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the cell of every row at the last level.

    The local engine places its rows by it. It is also the reference for Spark's descent.
    """
    node = tree_of_row.astype(np.int64)
    by_column = np.ascontiguousarray(ranks.T)
    flat, row = by_column.reshape(-1), np.arange(len(ranks), dtype=np.int64)
    for column, cut in forest.steps:
        if isinstance(column, int):
            here = by_column[column]
        else:
            place = column.take(node)
            place *= len(ranks)
            place += row
            here = flat.take(place)
        right = here >= cut.take(node)
        node <<= 1
        node += right
    return node


def _group(tree_of_row: npt.NDArray[np.int32], trees: int) -> list[npt.NDArray[np.int64]]:
    order = np.argsort(tree_of_row, kind="stable")
    edges = np.searchsorted(tree_of_row[order], np.arange(trees + 1))
    return [order[edges[tree] : edges[tree + 1]] for tree in range(trees)]
