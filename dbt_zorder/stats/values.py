"""Compute the bounds of floats from file values, because a footer's bounds of NaN depend on its writer.

Arrow reads these columns of small local files faster than Spark starts a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Bounds = tuple[Any, Any, int]
"""The bounds of one column in one file, None if every row is NULL, and its null_count."""

MOST_VALUES = 1 << 25
"""The most values read for a folder; Spark reads larger folders, possibly on other machines."""


def value_bounds(file: str, paths: Sequence[Sequence[str]]) -> list[Bounds]:
    """Return the bounds of float columns in Spark's order: NaN is above all numbers.

    Args:
        file: the path of a file on this machine.
        paths: the columns, each as its field names from the top level down. Joined by dots, each names one leaf.

    Raises:
        OSError, ArrowException: the file cannot be read.
    """
    with pq.ParquetFile(file) as opened:
        rows = opened.read(columns=[".".join(path) for path in paths])
    return [_bounds(_leaf(rows, path)) for path in paths]


def _leaf(rows: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    here = rows.column(path[0])
    for part in path[1:]:
        # by its number: Arrow parses a name that begins with a dot as a path
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
