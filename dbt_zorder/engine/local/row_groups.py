"""Splits the rows of a large file into consecutive parts, so that a sort need not have all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.engine.local.compare import as_cuts, at_or_below, order_by
from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.rows import Rows, group_slices

PART_BYTES = 32 << 20
"""Approximate bytes of a part's rows in memory."""


@dataclass(frozen=True)
class RowGroups:
    """Splits files into parts: by the tree's levels below the files, or by values of the sort key.

    A part has a number; the parts of a file have consecutive numbers in the order of its rows.

    Attributes:
        finder: cell finder of the layout.
        levels: number of levels below the file levels that split a file.
        values: ordered cuts of the sort key in the form for ``at_or_below``, if a curve or a single column orders rows.
    """

    finder: CellFinder
    levels: int = 0
    values: Any = None

    @classmethod
    def of(cls, finder: CellFinder, file_bytes: float, sample_keys: Callable[[], pa.Table]) -> RowGroups:
        """Split files into parts of at most ``PART_BYTES``.

        Args:
            finder: cell finder of the layout.
            file_bytes: bytes of a file's rows in memory.
            sample_keys: function that returns the keys of rows sampled from all of them.
        """
        wanted, layout = int(np.ceil(file_bytes / PART_BYTES)), finder.layout
        if wanted <= 1:
            return cls(finder)
        if layout.curve is None:
            return cls(finder, levels=min((wanted - 1).bit_length(), len(layout.levels) - layout.file_levels))
        values = finder.sort_key(sample_keys()).drop_null()
        if not len(values):  # all NULL
            return cls(finder)
        ordered = values.take(pa.array(order_by(values)))
        places = np.arange(1, wanted * layout.files) * len(values) // (wanted * layout.files)
        return cls(finder, values=as_cuts(ordered.take(pa.array(places))))

    @property
    def of_file(self) -> int:
        """Return the approximate number of parts per file."""
        if self.values is not None:
            return (len(self.values) + 1) // self.finder.layout.files
        return 1 << self.levels

    @property
    def _width(self) -> int:
        """Return the difference between the first part numbers of consecutive files."""
        if self.values is not None:
            return len(self.values) + 1
        layout = self.finder.layout
        return layout.trees << (layout.file_levels + self.levels) if self.levels else 1

    def file(self, part: int) -> int:
        """Return the file of a part."""
        return part // self._width

    def split_by_file(
        self, keys: pa.Table, cells: npt.NDArray[np.int64], chunk: int = 0, only: Sequence[int] | None = None
    ) -> tuple[Rows, dict[int, slice]]:
        """Return rows in order of their parts, stable within each, and the slice of each part in that order.

        Args:
            keys: Arrow table with one column per clustering key, see ``FetchedKeys``.
            cells: cell of each row.
            chunk: number of the chunk, if these are not all rows.
            only: files whose rows are returned, by default all.
        """
        order, files = self.finder.split_by_file(cells, chunk, only)
        if self._width == 1:
            return order, group_slices(files)
        if self.values is not None:
            within = at_or_below(self.finder.sort_key(keys), self.values)
        else:
            layout = self.finder.layout
            within = cells >> (len(layout.levels) - layout.file_levels - self.levels)
        parts = files * self._width + within[order]
        again = np.argsort(parts, kind="stable")
        return order[again], group_slices(parts[again])
