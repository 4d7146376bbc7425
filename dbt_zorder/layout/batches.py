"""Layouts of a batch by the tree of the table that it is added to: neighbours on the curve share a file.

A batch that is smaller than a file becomes one file. A larger batch is cut where the table itself was cut, so its files
are boxes that line up with the table's files.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from dbt_zorder.layout.file_count import SPLIT_ABOVE
from dbt_zorder.layout.layout import Layout

_TOO_COARSE = 3.0
"""Largest group, in files' worth of rows, for which the tree is fine enough.

In a larger group, the tree cannot separate the rows of the batch.
"""


def regroup(layout: Layout, counts: npt.NDArray[np.int64], file_rows: float) -> Layout | None:
    """Return the layout that sends a batch through a table's tree into files of about ``file_rows`` rows.

    Args:
        layout: layout of the table.
        counts: rows of the batch in each cell of the tree's last level, shape (cells,), see ``count_cells``.
        file_rows: target number of rows of a file.

    Returns:
        The layout, or None if the tree is too coarse. Such a batch is better laid out by itself.
    """
    groups, largest = group_cells(counts, layout.trees, file_rows)
    if largest > _TOO_COARSE * file_rows:
        return None
    return _with_groups(layout, groups, int(counts.sum()))


def one_file_layout(layout: Layout, rows: int, levels: int) -> Layout:
    """Return the layout that sends a batch into one file; the batch need not be counted by cells.

    Args:
        layout: layout of the table, which is not partitioned.
        rows: number of rows of the batch.
        levels: number of the tree's levels that order the rows, unless a curve orders them.
    """
    levels_used = [] if layout.curve is not None else layout.levels[:levels]
    return _with_groups(replace(layout, levels=levels_used), np.zeros(1 << len(levels_used), dtype=np.int32), rows)


def _with_groups(layout: Layout, groups: npt.NDArray[np.int32], rows: int) -> Layout:
    # an engine's subclass has fields for other files, so build a plain Layout in place of replace()
    unchanged = {one.name: getattr(layout, one.name) for one in fields(Layout)}
    changed = {
        "file_levels": len(layout.levels),
        "first_file": groups,
        "file_count": np.ones(len(groups), dtype=np.int32),
        "files": int(groups.max(initial=0)) + 1,
        "rows": rows,
    }
    return Layout(**{**unchanged, **changed})


def group_cells(counts: npt.NDArray[np.int64], trees: int, file_rows: float) -> tuple[npt.NDArray[np.int32], float]:
    """Group the cells of a forest into files.

    Cut nodes from the roots down until each has at most 1.5 files' worth of rows. Then join neighbours on the curve
    that fit into one file together.

    Args:
        counts: rows of each cell, shape (trees * 2^levels,).
        trees: number of trees.
        file_rows: target number of rows of a file, above 0.

    Returns:
        The file of each cell, and the rows of the fullest file.
    """
    edges = np.concatenate([[0], np.cumsum(counts)])
    width = len(counts) // trees
    total = int(edges[-1])
    if total <= SPLIT_ABOVE * file_rows:
        return np.zeros(len(counts), dtype=np.int32), float(total)
    ends: list[int] = []
    sizes: list[int] = []
    waiting = [(root * width, (root + 1) * width) for root in reversed(range(trees))]
    while waiting:
        first, end = waiting.pop()
        rows = int(edges[end] - edges[first])
        if rows > SPLIT_ABOVE * file_rows and end - first > 1:
            middle = (first + end) // 2
            waiting += [(middle, end), (first, middle)]
        elif ends and (sizes[-1] + rows <= file_rows or 0 in (sizes[-1], rows)):
            ends[-1] = end
            sizes[-1] += rows
        else:
            ends.append(end)
            sizes.append(rows)
    groups = np.searchsorted(np.asarray(ends), np.arange(len(counts)), side="right").astype(np.int32)
    return groups, float(max(sizes))
