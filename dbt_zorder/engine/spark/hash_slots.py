"""Finds integers that Spark's hash partitioning sends to a given partition.

``repartition(n, slot)`` puts a row into partition ``pmod(murmur3(slot, 42), n)``. With one integer for every partition,
each row goes exactly where a layout places it, in every version of Spark.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SEED = 42


def murmur3_int(values: npt.ArrayLike, seed: int = _SEED) -> npt.NDArray[np.int32]:
    """Return Spark's hash of INT values: Murmur3 x86 32-bit of the four bytes (``Murmur3_x86_32.hashInt``)."""
    with np.errstate(over="ignore"):
        k1 = np.asarray(values, dtype=np.int64).astype(np.uint32) * np.uint32(0xCC9E2D51)
        k1 = _rotate(k1, 15) * np.uint32(0x1B873593)
        h1 = np.uint32(seed) ^ k1
        h1 = _rotate(h1, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h1 = h1 ^ np.uint32(4)  # the length in bytes
        h1 = (h1 ^ (h1 >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h1 = (h1 ^ (h1 >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h1 = h1 ^ (h1 >> np.uint32(16))
    return h1.astype(np.int32)


def slots(partitions: int) -> npt.NDArray[np.int32]:
    """Return for every partition 0 .. ``partitions`` - 1 the smallest non-negative integer that hashes to it.

    Tries about F ln F integers for F partitions, which takes a few milliseconds for 10,000 partitions.
    """
    found = np.full(partitions, -1, dtype=np.int32)
    start = 0
    step = max(64, 4 * partitions)
    while (found < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int64)
        homes = np.mod(murmur3_int(candidates).astype(np.int64), partitions)
        first_homes, first_at = np.unique(homes, return_index=True)
        open_homes = found[first_homes] < 0
        found[first_homes[open_homes]] = candidates[first_at[open_homes]]
        start += step
    return found


def _rotate(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
