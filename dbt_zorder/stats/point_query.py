"""Estimate from the stats how many files an equality query on a column reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def point_query_files(minimum: pa.Array, maximum: pa.Array, rows: Sequence[int]) -> float:
    """Return the mean number of files whose bounds enclose a value, over the bounds themselves as values.

    Both bounds of a file are values that occur in it; each counts with half of the file's rows. Files without bounds
    (all NULL) enclose no value and do not count. Return 0.0 if no file has bounds, or none has a row count.

    Args:
        minimum, maximum: one key a file, of any type that Arrow sorts; NULL for a file without bounds.
        rows: the number of rows of each file.
    """
    has_bounds = pc.is_valid(minimum)
    low, high = minimum.filter(has_bounds), maximum.filter(has_bounds)
    weight = np.asarray(rows, dtype=np.float64)[has_bounds.to_numpy(zero_copy_only=False)]
    if not weight.any():
        return 0.0
    ranks = ranks_of(pa.concat_arrays([low, high]))
    lows, highs = ranks[: len(low)], ranks[len(low) :]
    began = np.searchsorted(np.sort(lows), ranks, side="right")
    ended = np.searchsorted(np.sort(highs), ranks, side="left")
    return float(np.average(began - ended, weights=np.concatenate([weight, weight])))


def ranks_of(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the place of each value among the distinct values, in ascending order; NaN is the greatest."""
    coded = values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank_of_code = np.empty(len(order), dtype=np.int64)
    rank_of_code[order] = np.arange(len(order))
    return np.asarray(rank_of_code[coded.indices.to_numpy()])
