"""Places the rows of a table in this process: does what ``apply_layout`` does in Spark, with keys in Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.curve.tree import Forest, descend
from dbt_zorder.engine.local.compare import at_or_below, cuts_of, order_by, radix_order
from dbt_zorder.engine.local.curve_keys import curve_cuts, curve_values
from dbt_zorder.engine.local.linear import tuples_of
from dbt_zorder.engine.rows import Rows, group_slices
from dbt_zorder.layout.key_arrays import integers, key_type
from dbt_zorder.layout.known_keys import with_cut_text
from dbt_zorder.layout.layout import Layout, LevelCuts
from dbt_zorder.layout.runs import Run, fitting_runs
from dbt_zorder.spark.arrow import one_chunk

_PART_ROWS = 1 << 17
"""Minimum number of rows per thread: with fewer, another thread gains nothing."""
_SLICE_ROWS = 1 << 16
"""Number of rows per step: for more, the system would allocate each step's results anew, page by page."""


@dataclass(frozen=True)
class CellFinder:
    """Finds the cell of each row in a layout.

    Attributes:
        layout: layout with keys of types that ``estimated_row_bytes`` supports.
        forest: trees of the layout, with cuts as indices into the distinct cuts of each column.
        cuts: distinct cuts by column number: a key, or the only column of a curve that cuts files.
    """

    layout: Layout
    forest: Forest
    cuts: Mapping[int, Any]

    @classmethod
    def by(cls, layout: Layout) -> CellFinder:
        """Return the cell finder of a layout."""
        return cls(layout, *_forest_of(layout))

    @property
    def count(self) -> int:
        """Return the number of cells at the last level."""
        return self.layout.trees << len(self.layout.levels)

    def cells(self, keys: pa.Table, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return the cell of every row at the last level.

        Args:
            keys: Arrow table with one column per clustering key, see ``FetchedKeys``; a row of a partition without a
                tree goes to a neighbour's.
            threads: number of threads.
        """
        rows = keys.num_rows
        size = max(_PART_ROWS, -(-rows // threads))
        if rows <= size:
            return self._cells(keys)
        with ThreadPoolExecutor(threads) as pool:
            parts = (keys.slice(start, size) for start in range(0, rows, size))
            return np.concatenate(list(pool.map(self._cells, parts)))

    def _cells(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        starts = range(0, max(1, keys.num_rows), _SLICE_ROWS)
        return np.concatenate([self._cells_of(keys.slice(start, _SLICE_ROWS)) for start in starts])

    def _cells_of(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        curve = self.layout.curve
        # cuts come from sampled keys with truncated text: beyond it, the following columns decide
        columns = (
            [self.sort_key(with_cut_text(keys))] if curve is not None and curve.cuts_files else self._columns(keys)
        )
        ranks = np.zeros((keys.num_rows, len(columns)), dtype=np.int32, order="F")
        for number, distinct in self.cuts.items():
            ranks[:, number] = at_or_below(columns[number], distinct)
        tree = np.zeros(keys.num_rows, dtype=np.int32)
        if self.layout.partition_columns:
            place = np.searchsorted(self.layout.partition_hashes, keys["p"].to_numpy())
            tree = np.minimum(place, self.layout.trees - 1).astype(np.int32)
        return descend(self.forest, ranks, tree)

    def _columns(self, keys: pa.Table) -> list[pa.Array]:
        return [one_chunk(keys.column(number)) for number in range(len(self.layout.keys))]

    @cached_property
    def _curve_cuts(self) -> list[Any]:
        assert self.layout.curve is not None
        return curve_cuts(self.layout.curve, self.layout.keys)

    def sort_key(self, keys: pa.Table) -> pa.Array:
        """Return the sort key of rows within a box, for a layout whose rows are ordered by a curve."""
        curve = self.layout.curve
        assert curve is not None
        if curve.curve == "linear" and not curve.cuts_files:  # a single column
            return self._columns(keys)[0]
        # computing a key needs several times the memory of the row and its key
        slices = (keys.slice(start, _SLICE_ROWS) for start in range(0, max(1, keys.num_rows), _SLICE_ROWS))
        along = partial(curve_values, curve, self._curve_cuts, self.layout.keys)
        return pa.concat_arrays([along(self._columns(some)) for some in slices])

    def boxes(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the cell at the last file level that contains each cell."""
        return cells >> (len(self.layout.levels) - self.layout.file_levels)

    def order(self, keys: pa.Table, cells: npt.NDArray[np.int64]) -> Rows:
        """Return the order of rows in files; equal rows keep their order."""
        if self.layout.curve is None:
            return radix_order(_in_runs(cells, keys, self.layout))
        order = order_by(self.sort_key(keys))
        return order[radix_order(self.boxes(cells)[order])]

    def files(self, boxes: npt.NDArray[np.int64], chunk: int = 0) -> npt.NDArray[np.int64]:
        """Return the file of each row, given rows in order of their boxes.

        If no column can split the rows of several files, these get equal shares in that order. Each chunk of rows
        starts with another file.
        """
        layout = self.layout
        first, count = layout.first_file[boxes].astype(np.int64), layout.file_count[boxes]
        if (layout.file_count > 1).any() and len(boxes):
            starts = np.searchsorted(boxes, boxes)
            first += ((np.arange(len(boxes)) - starts) * count // np.bincount(boxes)[boxes] + chunk) % count
        return np.minimum(first, layout.files - 1)

    def split_by_file(
        self, cells: npt.NDArray[np.int64], chunk: int = 0, only: Sequence[int] | None = None
    ) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return rows in order of their files, stable within each, and the file of each row.

        Args:
            cells: cell of each row.
            chunk: number of the chunk, if these are not all rows.
            only: files whose rows are returned, by default all.
        """
        boxes = self.boxes(cells)
        order = radix_order(boxes)
        files = self.files(boxes[order], chunk)
        if chunk and (self.layout.file_count > 1).any():
            again = np.argsort(files, kind="stable")
            order, files = order[again], files[again]
        if only is not None:
            wanted = np.isin(files, only)
            order, files = order[wanted], files[wanted]
        return order, files


def _forest_of(layout: Layout) -> tuple[Forest, dict[int, Any]]:
    """Return the trees of a layout, with cuts as indices into the distinct cuts of each column, and these cuts."""
    carriers, levels = _cuts(layout)
    places = [np.zeros((len(carriers), layout.trees << depth), dtype=np.int32) for depth in range(len(levels))]
    cuts: dict[int, Any] = {}
    for number, carrier in enumerate(carriers):
        values = [level.get(number, []) for level in levels]
        distinct, place_of = cuts_of([value for level in values for value in level if value is not None], carrier)
        if not len(distinct):
            continue
        cuts[number] = distinct
        for depth, level in enumerate(values):
            for node, value in enumerate(level):
                if value is not None:
                    places[depth][number, node] = place_of[repr(value)] + 1
    first, count = layout.first_file, layout.file_count
    return Forest(layout.trees, tuple(places), layout.file_levels, first, count, layout.files), cuts


def _cuts(layout: Layout) -> tuple[list[str], Sequence[LevelCuts]]:
    """Return the SQL type of each column that is cut, and its cuts."""
    curve = layout.curve
    if curve is None or not curve.cuts_files:
        return [key.carrier for key in layout.keys], layout.levels
    if curve.curve != "linear":
        return [curve.carrier], layout.levels
    types = [key_type(key) for key in layout.keys]
    # a tuple may have only the first keys if a type that only Spark orders follows; here none does
    return ["binary"], [
        {0: tuples_of([level[n] for n in sorted(level)], types)} if level else {} for level in layout.levels
    ]


def rows_of_files(keys: pa.Table, layout: Layout, threads: int = 1) -> dict[int, Rows]:
    """Return the rows of each file that has any, by file number, in file order; equal rows keep their order."""
    finder = CellFinder.by(layout)
    cells = finder.cells(keys, threads)
    order = finder.order(keys, cells)
    return {file: order[here] for file, here in group_slices(finder.files(finder.boxes(cells)[order])).items()}


def _in_runs(cells: npt.NDArray[np.int64], keys: pa.Table, layout: Layout) -> npt.NDArray[np.int64]:
    """Return the sort key of rows: the cell, and in lower bits a number that groups equal values within a cell."""
    kept, bits = fitting_runs(layout.runs, int(cells.max(initial=0)).bit_length())
    for run in kept:
        cells = (cells << bits) | (_numbers(one_chunk(keys.column(run.key)), run) & ((1 << bits) - 1))
    return cells


def _numbers(values: pa.Array, run: Run) -> npt.NDArray[np.int64]:
    if run.unit:
        # Spark's div rounds negative numbers differently, which only changes the order of rows within a cell
        return np.asarray(integers(values) // run.unit)
    coded = values.dictionary_encode()
    return np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def count_cells_locally(keys: pa.Table, layout: Layout) -> npt.NDArray[np.int64] | None:
    """Return what ``count_cells`` does, for keys in memory, see ``FetchedKeys``."""
    if layout.partition_columns and not np.isin(keys["p"].to_numpy(), layout.partition_hashes).all():
        return None
    return np.bincount(CellFinder.by(layout).cells(keys), minlength=layout.trees << len(layout.levels))
