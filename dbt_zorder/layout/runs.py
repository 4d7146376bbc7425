"""Columns by which the rows of one cell are sorted, so that equal values lie in runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dbt_zorder.curve.morton import LONG_BITS
from dbt_zorder.curve.repeats import run_columns
from dbt_zorder.curve.tree import Forest, descend
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.sample import Sample

_MOST_BITS, _FEWEST_BITS = 16, 8
"""Of a column: a cell has some thousand rows. More bits would be more passes of Spark's radix sort, fewer would mix
values."""


_MOST_UNIT = (1 << 63) - 1


@dataclass(frozen=True)
class Run:
    """A column by which the rows of a cell are sorted.

    Attributes:
        key: number of its key.
        unit: what all differences of its values are multiples of, where these are whole numbers: an hour for times of
            full hours. 0 where they go by a hash.
    """

    key: int
    unit: int = 0

    @classmethod
    def of(cls, key: int, carrier: str, distinct: pa.Array) -> Run:
        """Return the run of a key, by the distinct keys of a sample in their order."""
        if carrier != "bigint":
            return cls(key)
        values = distinct.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        unit = int(np.gcd.reduce(np.diff(values)))  # unsigned, so that no difference is too large
        return cls(key, unit if unit <= _MOST_UNIT else 0)


def runs_of(forest: Forest, sample: Sample, keys: Sequence[Key], rows: int) -> list[Run]:
    """Return by what the rows of one cell of a table are sorted, see ``run_columns``.

    Args:
        forest: of the table.
        sample: that it was grown over.
        keys: of the clustering columns.
        rows: of the table.
    """
    columns: tuple[int, ...] = ()
    # what hardly repeats in a whole table does not in its cells, for which the sample goes down the tree once more
    if run_columns(np.zeros(len(sample.ranks), dtype=np.int64), sample.ranks, rows):
        columns = run_columns(descend(forest, sample.ranks, sample.partitions), sample.ranks, rows)
    return [Run.of(column, keys[column].carrier, sample.distinct[column]) for column in columns]


def room_for(runs: Sequence[Run], place_bits: int) -> tuple[Sequence[Run], int]:
    """Return the runs that have a place below so many bits of a BIGINT, the first ones, and the bits of each."""
    kept = runs[: (LONG_BITS - place_bits) // _FEWEST_BITS]
    return kept, min(_MOST_BITS, (LONG_BITS - place_bits) // max(1, len(kept)))
