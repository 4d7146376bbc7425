"""The rows of a large file in parts that follow each other, so that not all of them need be in memory to be sorted."""

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
"""What the rows of a part take in memory, roughly."""


@dataclass(frozen=True)
class RowGroups:
    """How files are parted: by the tree's levels below them, or by values of what their rows are sorted by.

    A part has a number; those of one file follow each other in the order of its rows.

    Attributes:
        finder: of the rows.
        levels: below those that cut files.
        values: in order, as ``at_or_below`` takes them, where a curve, or a column alone, orders rows.
    """

    finder: CellFinder
    levels: int = 0
    values: Any = None

    @classmethod
    def of(cls, finder: CellFinder, file_bytes: float, sample_keys: Callable[[], pa.Table]) -> RowGroups:
        """Part files so that a part takes ``PART_BYTES`` or less.

        Args:
            finder: of the rows.
            file_bytes: that the rows of a file take in memory.
            sample_keys: gives what some rows are placed by, drawn from all of them.
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
        """Into how many parts a file is parted, roughly."""
        if self.values is not None:
            return (len(self.values) + 1) // self.finder.layout.files
        return 1 << self.levels

    @property
    def _width(self) -> int:
        """What lies between the numbers of the first parts of two files."""
        if self.values is not None:
            return len(self.values) + 1
        layout = self.finder.layout
        return layout.trees << (layout.file_levels + self.levels) if self.levels else 1

    def file(self, part: int) -> int:
        """Return the file that a part is of."""
        return part // self._width

    def split_by_file(
        self, keys: pa.Table, cells: npt.NDArray[np.int64], chunk: int = 0, only: Sequence[int] | None = None
    ) -> tuple[Rows, dict[int, slice]]:
        """Return rows in the order of their parts, as they came within each, and where each part's lie in that order.

        Args:
            keys: of the rows, as of ``FetchedKeys``.
            cells: of the rows.
            chunk: its number, if these are not all rows.
            only: the files whose rows are wanted, by default all.
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
