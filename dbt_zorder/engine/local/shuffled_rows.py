"""Packs rows for the shuffle in few bytes, and unpacks them in file order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.local.spool.spool import Spool
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.keys import Key
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.decimals import unpack_decimals

_CELL, _FOLDER = "cell", "folder"


@dataclass(frozen=True)
class ShuffledRows:
    """Rows between the spool and their files.

    Attributes:
        spool: spooled rows.
        keys: keys that place the rows.
    """

    spool: Spool
    keys: Sequence[Key]

    @cached_property
    def shortened(self) -> Mapping[str, pa.DataType]:
        """Return the types of the decimal columns that are whole numbers during the shuffle."""
        return self.spool.shortened(self.keys)

    def pack(
        self, found: pa.Table, cells: npt.NDArray[np.int64], count: int, folders: npt.NDArray[np.int32] | None = None
    ) -> pa.Table:
        """Return the file columns of spooled rows, with the columns that sort them later.

        Args:
            found: rows as ``Spool.read_compact`` returns them.
            cells: cell of each row.
            count: number of all cells.
            folders: folder number of each row, if the table is partitioned.
        """
        columns = {name: one_chunk(found[name]) for name in self.spool.data_columns}
        # there are at most 32,768 cells, unless there are more files, each with one cell
        columns[_CELL] = pa.array(cells.astype(np.int32) if count < 1 << 31 else cells)
        if folders is not None:
            columns[_FOLDER] = pa.array(folders)
        return pa.table(columns)

    def order(self, finder: CellFinder, shuffled: pa.Table) -> Rows:
        """Return the order of shuffled rows in their files."""
        return finder.order(self.spool.keys_in(shuffled, self.keys), shuffled[_CELL].to_numpy().astype(np.int64))

    def folders(self, shuffled: pa.Table) -> npt.NDArray[np.int32]:
        """Return the folder number of each row."""
        return np.asarray(shuffled[_FOLDER].to_numpy(), dtype=np.int32)

    def unpack(self, rows: pa.Table, order: Rows, threads: int = 1) -> pa.Table:
        """Return rows of the shuffle or of the spool in the given order, with the column names of the query.

        Columns are reordered one by one, so that only one per thread is in memory twice.
        """
        chosen = pa.array(order)

        def taken(column: str) -> pa.Array:
            values = one_chunk(rows[column]).take(chosen)
            kind = self.shortened.get(column)
            return unpack_decimals(values, kind) if kind is not None and values.type != kind else values

        names = self.spool.data_columns
        if threads == 1:
            return pa.table(dict(zip(names.values(), map(taken, names), strict=True)))
        with ThreadPoolExecutor(threads) as pool:
            return pa.table(dict(zip(names.values(), pool.map(taken, names), strict=True)))
