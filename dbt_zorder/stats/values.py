"""Bounds of floats, read from the files themselves: what a footer says of NaN depends on its writer.

Of files of this machine that are small enough, Arrow reads the columns sooner than Spark begins a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Bounds = tuple[Any, Any, int]
"""One column of one file: both bounds, None where all rows are NULL, and the count of NULL."""

MOST_VALUES = 1 << 25
"""That are read of a folder; more of them Spark reads, maybe on other machines."""


def value_bounds(file: str, paths: Sequence[Sequence[str]]) -> list[Bounds]:
    """Return the bounds of some columns of floats by Spark's order: NaN is above all numbers.

    Args:
        file: on this machine.
        paths: of the columns, by field names from the top level down; with dots, no other leaf has that name.

    Raises:
        OSError, ArrowException: it cannot be read.
    """
    with pq.ParquetFile(file) as opened:
        rows = opened.read(columns=[".".join(path) for path in paths])
    return [_bounds(_leaf(rows, path)) for path in paths]


def _leaf(rows: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    here = rows.column(path[0])
    for part in path[1:]:
        # by its number: Arrow takes a name that begins with a dot for a path
        here = pc.struct_field(here, here.type.get_field_index(part))
    return here


def _bounds(column: pa.ChunkedArray) -> Bounds:
    values = column.drop_null().to_numpy()
    if not len(values):
        return None, None, column.null_count
    numbers = values[~np.isnan(values)]
    if not len(numbers):
        return np.nan, np.nan, column.null_count
    high = numbers.max() if len(numbers) == len(values) else np.nan
    return float(numbers.min()), float(high), column.null_count
