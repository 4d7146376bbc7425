"""The layout of a table whose files are split: each part of a partition has the tree that the partition had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dbt_zorder.layout.keys import KeyValue
from dbt_zorder.layout.layout import Layout


def split_trees(layout: Layout, parts: Mapping[int, int]) -> Layout:
    """Return a layout with a tree for each part of a partition: a copy of the partition's own tree.

    Args:
        layout: layout of the table before the split.
        parts: hash of the whole partition, by the hash of each part. Partitions that the layout does not have are left
            out, as their rows are laid out on their own.
    """
    trees = {int(whole): tree for tree, whole in enumerate(layout.partition_hashes)}
    hashes = sorted(part for part, whole in parts.items() if whole in trees)
    copied = np.asarray([trees[parts[part]] for part in hashes], dtype=np.int64)
    files = layout.files_of_trees[copied]
    cells = _places(copied, 1 << layout.file_levels)
    before = np.repeat(np.cumsum(files) - files, 1 << layout.file_levels)
    first = layout.first_file[:: 1 << layout.file_levels][copied]
    return replace(
        layout,
        levels=[
            {key: _taken(values, _places(copied, 1 << level)) for key, values in cuts.items()}
            for level, cuts in enumerate(layout.levels)
        ],
        first_file=(layout.first_file[cells] - np.repeat(first, 1 << layout.file_levels) + before).astype(np.int32),
        file_count=layout.file_count[cells],
        files=int(files.sum()),
        partition_hashes=np.asarray(hashes, dtype=np.int64),
    )


def _places(trees: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the nodes of trees on a level on which each tree has ``width`` nodes."""
    places: npt.NDArray[np.int64] = (trees[:, np.newaxis] * width + np.arange(width)).ravel()
    return places


def _taken(values: Sequence[KeyValue | None], places: npt.NDArray[np.int64]) -> list[KeyValue | None]:
    return [values[place] for place in places]
