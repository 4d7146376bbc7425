"""Where the rows of a small table go, reckoned here: what ``apply_layout`` does in Spark, over keys in Arrow."""

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
from dbt_zorder.engine.local.compare import at_or_below, cuts_of, in_order, order_by
from dbt_zorder.engine.local.curve_keys import curve_cuts, curve_values
from dbt_zorder.engine.local.linear import tuples_of
from dbt_zorder.engine.rows import Rows, stretches
from dbt_zorder.layout.key_arrays import integers, key_type
from dbt_zorder.layout.known_keys import with_cut_text
from dbt_zorder.layout.layout import Layout, LevelCuts
from dbt_zorder.layout.runs import Run, fitting_runs
from dbt_zorder.spark.arrow import one_chunk

_PART_ROWS = 1 << 17
"""For fewer, a thread more is no gain."""
_SLICE_ROWS = 1 << 16
"""At a time: what each step makes of more is memory that the system hands out anew, page by page, for every one."""


@dataclass(frozen=True)
class Placing:
    """A layout as rows are sent through it here.

    Attributes:
        layout: of keys of types that ``width_of`` knows.
        forest: its trees, whose cuts are places among the distinct ones of each column.
        cuts: these, by number of the column that is cut: a key, or the only one of a curve that cuts files.
    """

    layout: Layout
    forest: Forest
    cuts: Mapping[int, Any]

    @classmethod
    def by(cls, layout: Layout) -> Placing:
        """Return the way of rows through a layout."""
        return cls(layout, *_forest_of(layout))

    @property
    def count(self) -> int:
        """Number of cells at the last level."""
        return self.layout.trees << len(self.layout.levels)

    def cells(self, keys: pa.Table, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return the cell of every row at the last level.

        Args:
            keys: as of ``FetchedKeys``; a row of a partition that the layout does not know counts as of a neighbour's.
            threads: that reckon at a time.
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
        # cuts are of sampled keys, whose text is cut: beyond that the columns behind it count
        columns = [self.along(with_cut_text(keys))] if curve is not None and curve.cuts_files else self._columns(keys)
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

    def along(self, keys: pa.Table) -> pa.Array:
        """Return what rows are sorted by within a box, of a layout whose curve orders them."""
        curve = self.layout.curve
        assert curve is not None
        if curve.curve == "linear" and not curve.cuts_files:  # one column alone
            return self._columns(keys)[0]
        # on the way to its key a row takes some times the memory that it and the key do
        slices = (keys.slice(start, _SLICE_ROWS) for start in range(0, max(1, keys.num_rows), _SLICE_ROWS))
        along = partial(curve_values, curve, self._curve_cuts, self.layout.keys)
        return pa.concat_arrays([along(self._columns(some)) for some in slices])

    def boxes(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the cell of the last file level that each cell lies in."""
        return cells >> (len(self.layout.levels) - self.layout.file_levels)

    def order(self, keys: pa.Table, cells: npt.NDArray[np.int64]) -> Rows:
        """Return rows in the order that they have in files, equal ones as they came."""
        if self.layout.curve is None:
            return in_order(_in_runs(cells, keys, self.layout))
        order = order_by(self.along(keys))
        return order[in_order(self.boxes(cells)[order])]

    def files(self, boxes: npt.NDArray[np.int64], piece: int = 0) -> npt.NDArray[np.int64]:
        """Return the file of each row, which are in order of their boxes.

        Where no column can part the rows of several files, these take equal shares of them in that order; each piece of
        the rows begins with another file.
        """
        layout = self.layout
        first, count = layout.first_file[boxes].astype(np.int64), layout.file_count[boxes]
        if (layout.file_count > 1).any() and len(boxes):
            starts = np.searchsorted(boxes, boxes)
            first += ((np.arange(len(boxes)) - starts) * count // np.bincount(boxes)[boxes] + piece) % count
        return np.minimum(first, layout.files - 1)

    def share_out(
        self, cells: npt.NDArray[np.int64], piece: int = 0, only: Sequence[int] | None = None
    ) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return rows in the order of their files, as they came within each, and the file of each.

        Args:
            cells: of the rows.
            piece: its number, if these are not all rows.
            only: the files whose rows are wanted, by default all.
        """
        boxes = self.boxes(cells)
        order = in_order(boxes)
        files = self.files(boxes[order], piece)
        if piece and (self.layout.file_count > 1).any():
            again = np.argsort(files, kind="stable")
            order, files = order[again], files[again]
        if only is not None:
            wanted = np.isin(files, only)
            order, files = order[wanted], files[wanted]
        return order, files


def _forest_of(layout: Layout) -> tuple[Forest, dict[int, Any]]:
    """Return the trees of a layout, whose cuts are places among the distinct ones of each column, and these."""
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
    """Return the SQL type of each column that is cut, and where."""
    curve = layout.curve
    if curve is None or not curve.cuts_files:
        return [key.carrier for key in layout.keys], layout.levels
    if curve.curve != "linear":
        return [curve.carrier], layout.levels
    types = [key_type(key) for key in layout.keys]
    # a tuple has the first keys alone where a type that Spark orders comes behind: none does here
    return ["binary"], [
        {0: tuples_of([level[n] for n in sorted(level)], types)} if level else {} for level in layout.levels
    ]


def rows_of_files(keys: pa.Table, layout: Layout, threads: int = 1) -> dict[int, Rows]:
    """Return the rows of each file that gets any, by its number, in their order there; equal ones as they came."""
    placing = Placing.by(layout)
    cells = placing.cells(keys, threads)
    order = placing.order(keys, cells)
    return {file: order[here] for file, here in stretches(placing.files(placing.boxes(cells)[order])).items()}


def _in_runs(cells: npt.NDArray[np.int64], keys: pa.Table, layout: Layout) -> npt.NDArray[np.int64]:
    """Return what rows are sorted by: the cell, and below it what puts equal values of a cell next to each other."""
    kept, bits = fitting_runs(layout.runs, int(cells.max(initial=0)).bit_length())
    for run in kept:
        cells = (cells << bits) | (_numbers(one_chunk(keys.column(run.key)), run) & ((1 << bits) - 1))
    return cells


def _numbers(values: pa.Array, run: Run) -> npt.NDArray[np.int64]:
    if run.unit:
        # below zero Spark's div numbers otherwise: rows of a cell are then in another order, which no reader can tell
        return np.asarray(integers(values) // run.unit)
    coded = values.dictionary_encode()
    return np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def count_held(keys: pa.Table, layout: Layout) -> npt.NDArray[np.int64] | None:
    """Do what ``count_cells`` does, of the keys of rows that are here, see ``FetchedKeys``."""
    if layout.partition_columns and not np.isin(keys["p"].to_numpy(), layout.partition_hashes).all():
        return None
    return np.bincount(Placing.by(layout).cells(keys), minlength=layout.trees << len(layout.levels))
