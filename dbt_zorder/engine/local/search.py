"""Searches in Arrow for values that NumPy cannot compare: all at once, and equal values only once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_PROBE_ROWS = 1 << 13


def binary_search(values: pa.Array, cuts: pa.Array) -> npt.NDArray[np.int32]:
    """Return for each value how many cuts are at or below it.

    Args:
        values: values without NULL.
        cuts: ordered cuts of the same type.
    """
    found = np.zeros(len(values), dtype=np.int32)
    for bit in reversed(range(len(cuts).bit_length())):
        ahead = found + (1 << bit)
        here = cuts.take(pa.array(np.minimum(ahead, len(cuts)) - 1))
        above = pc.greater_equal(values, here).to_numpy(zero_copy_only=False)
        found = np.where((ahead <= len(cuts)) & above, ahead, found).astype(np.int32)
    return found


def map_distinct(values: pa.Array, number: Callable[[pa.Array], npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    """Return a number for each value, any number for NULL; if values repeat, compute it once per distinct value."""
    if not _repeat(values):
        return number(values)
    coded = values.dictionary_encode()
    of_value = np.append(number(coded.dictionary), np.int32(0))  # the last is for NULL
    return np.asarray(of_value[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)])


def _repeat(values: pa.Array) -> bool:
    """Return whether most of the first values repeat: otherwise finding equal values takes longer than it saves."""
    first = values[:_PROBE_ROWS]
    return bool(2 * len(first.unique()) < len(first))
