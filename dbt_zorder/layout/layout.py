"""The layout of a table: the cuts of a forest as values of the keys, complete in itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.tree import Forest
from dbt_zorder.layout.curve import Curve
from dbt_zorder.layout.keys import Key, KeyValue
from dbt_zorder.layout.partitions import partition_hash
from dbt_zorder.layout.runs import Run
from dbt_zorder.layout.sample import Sample

LevelCuts = Mapping[int, Sequence[KeyValue | None]]
"""The cuts of one level: for each number of a key, one value for each node, None where the key does not cut.

Along the curve ``linear``, a cut is a tuple of all keys, with None for NULL. Along another curve that cuts files, the
curve's own key is the only one, with number 0.
"""


@dataclass(frozen=True)
class Layout:
    """The destination of every row. Nodes, cells and files are numbered as in ``Forest``.

    Attributes:
        keys: keys of the clustering columns.
        levels: cuts of each level. A row whose key is >= the cut goes right; NULL goes left.
        file_levels: number of levels that choose the file; the levels after them order the rows inside it.
        first_file: first file of each cell of the last file level, shape (cells,).
        file_count: number of files over which a hash spreads the rows of each cell, shape (cells,).
        files: number of files.
        partition_columns: SQL names of the partition columns.
        partition_hashes: sorted 64-bit hashes of the partitions; the position of a partition is the number of its tree.
        rows: exact number of rows.
        curve: curve that orders the rows of a file; None if the levels below the file order them.
        runs: columns that sort the rows of one cell, see ``run_columns``.
    """

    keys: Sequence[Key]
    levels: Sequence[LevelCuts]
    file_levels: int
    first_file: npt.NDArray[np.int32]
    file_count: npt.NDArray[np.int32]
    files: int
    partition_columns: Sequence[str]
    partition_hashes: npt.NDArray[np.int64]
    rows: int
    curve: Curve | None = None
    runs: Sequence[Run] = ()

    @property
    def trees(self) -> int:
        """Number of trees, one for each partition."""
        return max(1, len(self.partition_hashes))

    @property
    def files_of_trees(self) -> npt.NDArray[np.int64]:
        """Number of files of each tree, shape (trees,)."""
        return np.diff(np.append(self.first_file[:: 1 << self.file_levels], self.files)).astype(np.int64)

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Whether rows can reach each cell of the last file level, shape (cells,).

        A node without a cut sends all its rows left.
        """
        here = np.ones(self.trees, dtype=np.bool_)
        for level in self.levels[: self.file_levels]:
            cut = np.zeros(len(here), dtype=np.bool_)
            for values in level.values():
                cut |= np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(here))
            here = np.stack([here, here & cut], axis=1).ravel()
        return here

    @classmethod
    def of(
        cls,
        forest: Forest,
        sample: Sample,
        keys: Sequence[Key],
        partition_columns: Sequence[str],
        partition_hashes: npt.NDArray[np.int64],
        rows: int,
    ) -> Layout:
        """Convert the ranks at which a forest cuts to the shortest values that cut alike."""
        return cls(
            keys=keys,
            levels=[_values(cuts, sample, keys) for cuts in forest.cuts],
            file_levels=forest.file_levels,
            first_file=forest.first_file,
            file_count=forest.file_count,
            files=forest.files,
            partition_columns=partition_columns,
            partition_hashes=partition_hashes,
            rows=rows,
        )

    @property
    def partition_hash(self) -> str:
        """SQL text of the hash of a row's partition."""
        return partition_hash(self.partition_columns)

    def cut_of(self, level: int, node: int) -> tuple[Key, KeyValue] | None:
        """Return the key and value that cut a node of a tree over the columns; None if there is no cut."""
        for number, cuts in self.levels[level].items():
            cut = cuts[node]
            if cut is not None:
                return self.keys[number], cut
        return None


def _values(cuts: npt.NDArray[np.int32], sample: Sample, keys: Sequence[Key]) -> dict[int, list[KeyValue | None]]:
    return {
        number: [None if cut == 0 else sample.cut_value(number, cut, key.carrier) for cut in cuts[number].tolist()]
        for number, key in enumerate(keys)
        if cuts[number].any()
    }
