"""Keys of a query that are in this process before its layout is planned: of all rows or of a drawn part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.layout.keys import SAMPLE_BYTES


@dataclass(frozen=True)
class FetchedKeys:
    """What rows are placed by, of all rows of a query.

    Attributes:
        keys: one column a key, as ``Key.expression`` gives it, text as bytes; behind them ``p``, the hash of each row's
            partition, if the table has any.
    """

    keys: pa.Table

    @property
    def sampled(self) -> pa.Table:
        """The keys as ``Key.sampled`` gives them: text is cut, so that no cut between two files is long."""
        return with_cut_text(self.keys)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.keys.num_rows)


@dataclass(frozen=True)
class DrawnKeys:
    """The same of so many rows of a query as are asked for, where those of all would take too much of memory.

    Attributes:
        count: number of all rows.
        text_bytes: that a key of text takes in the mean.
        draw: gives the keys of so many rows, one more or less, or of all there are, drawn by a seed, in the order in
            which rows came: as of ``FetchedKeys``, but that text is cut as in its ``sampled``.
    """

    count: int
    text_bytes: int
    draw: Callable[[int, int], FetchedKeys]


Known: TypeAlias = "FetchedKeys | DrawnKeys | int | None"
"""What is known of the rows of a query: what they are placed by, or how many they are."""


@dataclass(frozen=True)
class Fetched(FetchedKeys):
    """The rows of a query.

    Attributes:
        rows: with the columns that files have, every one of them nullable, in one chunk: all of the query's, or those
            that do not part the table.
        folders: of the partitions, as Spark names them: ``day=2024-01-01/shop=7``; an empty name if there are none.
        folder_of: shape (rows,): the number of each row's folder.
    """

    rows: pa.Table
    folders: Sequence[str]
    folder_of: npt.NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.num_rows)


def with_cut_text(keys: pa.Table) -> pa.Table:
    """Return keys whose text is cut to ``SAMPLE_BYTES``."""
    for place, column in enumerate(keys.columns):
        if pa.types.is_binary(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > SAMPLE_BYTES:
            keys = keys.set_column(place, keys.field(place), pc.binary_slice(column, 0, SAMPLE_BYTES))
    return keys


def count_of(known: Known) -> int | None:
    """Return how many rows a query has, if that is known."""
    return known.count if isinstance(known, (FetchedKeys, DrawnKeys)) else known
