"""The columns that sort the rows of one cell, so that equal values lie in runs."""

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
"""Limits on the bits of a column in the sort key; a cell has a few thousand rows.

More bits would need more passes of Spark's radix sort, and fewer would mix values.
"""


_MOST_UNIT = (1 << 63) - 1


@dataclass(frozen=True)
class Run:
    """A column that sorts the rows of a cell.

    Attributes:
        key: number of the column's key.
        unit: greatest common divisor of the differences between the column's values, if these are whole numbers. It is
            an hour for times of full hours. It is 0 if the column is sorted by a hash.
    """

    key: int
    unit: int = 0

    @classmethod
    def of(cls, key: int, carrier: str, distinct: pa.Array) -> Run:
        """Return the run of a key, from the distinct keys of a sample in their order."""
        if carrier != "bigint":
            return cls(key)
        values = distinct.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        unit = int(np.gcd.reduce(np.diff(values)))  # unsigned, so that no difference overflows
        return cls(key, unit if unit <= _MOST_UNIT else 0)


def runs_of(forest: Forest, sample: Sample, keys: Sequence[Key], rows: int) -> list[Run]:
    """Return the columns that sort the rows of one cell of a table, see ``run_columns``.

    Args:
        forest: forest of the table.
        sample: sample over which the forest was grown.
        keys: keys of the clustering columns.
        rows: number of rows of the table.
    """
    columns: tuple[int, ...] = ()
    # values that hardly repeat in the table do not repeat in its cells, so skip a second descent of the sample
    if run_columns(np.zeros(len(sample.ranks), dtype=np.int64), sample.ranks, rows):
        columns = run_columns(descend(forest, sample.ranks, sample.partitions), sample.ranks, rows)
    return [Run.of(column, keys[column].carrier, sample.distinct[column]) for column in columns]


def fitting_runs(runs: Sequence[Run], place_bits: int) -> tuple[Sequence[Run], int]:
    """Return the first runs that fit into a BIGINT below a position of ``place_bits`` bits, and the bits of each."""
    kept = runs[: (LONG_BITS - place_bits) // _FEWEST_BITS]
    return kept, min(_MOST_BITS, (LONG_BITS - place_bits) // max(1, len(kept)))
