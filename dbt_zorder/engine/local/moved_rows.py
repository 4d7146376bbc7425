"""Rows between the copy of a query and their files: in as few bytes as will do, and then in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.engine.local.place import Placing
from dbt_zorder.engine.local.spool import Copied
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.keys import Key
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.decimals import unpack_decimals

_CELL, _FOLDER = "cell", "folder"


@dataclass(frozen=True)
class MovedRows:
    """What becomes of rows of a copy on their way.

    Attributes:
        copied: the rows.
        keys: what they are placed by.
    """

    copied: Copied
    keys: Sequence[Key]

    @cached_property
    def shortened(self) -> Mapping[str, pa.DataType]:
        """Types of the decimals that are whole numbers on their way."""
        return self.copied.shortened(self.keys)

    def moved(
        self, found: pa.Table, cells: npt.NDArray[np.int64], count: int, folders: npt.NDArray[np.int32] | None = None
    ) -> pa.Table:
        """Return what goes into files of some rows of the copy, and what tells their order there.

        Args:
            found: rows, as ``Copied.read_compact`` gives them.
            cells: of each.
            count: of all cells.
            folders: the number of each row's folder, if the table is parted.
        """
        columns = {name: one_chunk(found[name]) for name in self.copied.data_columns}
        # there are 32,768 cells at most, but for one of each of more files
        columns[_CELL] = pa.array(cells.astype(np.int32) if count < 1 << 31 else cells)
        if folders is not None:
            columns[_FOLDER] = pa.array(folders)
        return pa.table(columns)

    def order(self, placing: Placing, moved: pa.Table) -> Rows:
        """Return the order in which rows that were moved stand in files."""
        return placing.order(self.copied.keys_in(moved, self.keys), moved[_CELL].to_numpy().astype(np.int64))

    def folders(self, moved: pa.Table) -> npt.NDArray[np.int32]:
        """Return the number of each row's folder."""
        return np.asarray(moved[_FOLDER].to_numpy(), dtype=np.int32)

    def in_order(self, rows: pa.Table, order: Rows, threads: int = 1) -> pa.Table:
        """Return some rows, moved or as they are in the copy, by the names of the query.

        Column by column, so that no more than one for each thread is here twice.
        """
        chosen = pa.array(order)

        def taken(column: str) -> pa.Array:
            values = one_chunk(rows[column]).take(chosen)
            kind = self.shortened.get(column)
            return unpack_decimals(values, kind) if kind is not None and values.type != kind else values

        names = self.copied.data_columns
        if threads == 1:
            return pa.table(dict(zip(names.values(), map(taken, names), strict=True)))
        with ThreadPoolExecutor(threads) as pool:
            return pa.table(dict(zip(names.values(), pool.map(taken, names), strict=True)))
