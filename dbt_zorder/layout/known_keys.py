"""Keys of a query that are in this process before its layout is planned: of all rows or of a random sample."""

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
    """Keys of all rows of a query.

    Attributes:
        keys: one column for each key, as ``Key.expression`` gives it, with text as bytes. If the table has partitions,
            the last column ``p`` is the hash of each row's partition.
    """

    keys: pa.Table

    @property
    def sampled(self) -> pa.Table:
        """The keys as ``Key.sampled`` gives them, with text cut so that cuts between files stay short."""
        return with_cut_text(self.keys)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.keys.num_rows)


@dataclass(frozen=True)
class DrawnKeys:
    """Keys of a sample of rows, for a query whose keys would need too much memory.

    Attributes:
        count: number of all rows.
        text_bytes: mean bytes of a key of text.
        draw: function of a number of rows and a seed. It returns the keys of that many rows, give or take one, in their
            original order. It returns those of all rows if there are fewer. Text is cut as in ``FetchedKeys.sampled``.
    """

    count: int
    text_bytes: int
    draw: Callable[[int, int], FetchedKeys]


KnownKeys: TypeAlias = "FetchedKeys | DrawnKeys | int | None"
"""Rows of a query before planning: all keys, keys to draw, a number of rows, or None."""


@dataclass(frozen=True)
class Fetched(FetchedKeys):
    """Rows of a query.

    Attributes:
        rows: columns of the files, all nullable, in one chunk. They are all columns of the query, or all but the
            partition columns.
        folders: folders of the partitions as Spark names them, ``day=2024-01-01/shop=7``; one empty name if there are
            no partitions.
        folder_of: number of each row's folder, shape (rows,).
    """

    rows: pa.Table
    folders: Sequence[str]
    folder_of: npt.NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.num_rows)


def with_cut_text(keys: pa.Table) -> pa.Table:
    """Return keys with text cut to ``SAMPLE_BYTES``."""
    for place, column in enumerate(keys.columns):
        if pa.types.is_binary(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > SAMPLE_BYTES:
            keys = keys.set_column(place, keys.field(place), pc.binary_slice(column, 0, SAMPLE_BYTES))
    return keys


def count_of(known_keys: KnownKeys) -> int | None:
    """Return the number of rows of a query, None if it was not counted."""
    return known_keys.count if isinstance(known_keys, (FetchedKeys, DrawnKeys)) else known_keys
