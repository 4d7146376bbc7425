"""Searches among many ordered numbers by table look-ups in place of a binary search.

The range from the least to the greatest cut is divided into buckets of equal width. If a bucket has one cut, a number
is compared with it alone. NumPy searches in buckets with more cuts. Finding 65,536 numbers among 1,000 even cuts takes
0.3 ms in place of 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_BITS = 16
_FEWEST = 16
"""Minimum number of cuts: fewer are faster to search."""
_MOST = 1 << 17
"""Maximum number of cuts: with more, as for 100,000 files, building the table takes longer than it saves."""
_CROWDED = -1
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Buckets:
    """Ordered cuts, and a table of the buckets that divide their range.

    Attributes:
        cuts: ordered cuts.
        least: least cut.
        shift: number of low bits that do not select the bucket.
        before: shape (buckets,): number of cuts in all buckets before; ``_CROWDED`` for a bucket with several cuts.
        cut: shape (buckets,): cut to compare with; the greatest int64 for a bucket with no cut or several.
        alone: number of cuts that are alone in their bucket.
    """

    cuts: npt.NDArray[np.int64]
    least: np.uint64
    shift: np.uint64
    before: npt.NDArray[np.int32]
    cut: npt.NDArray[np.int64]
    alone: int

    @classmethod
    def of(cls, cuts: npt.NDArray[np.int64]) -> Buckets:
        """Divide the range of the cuts into 2**15 to 2**16 buckets, or fewer if it is smaller."""
        width = (int(cuts[-1]) - int(cuts[0])).bit_length()
        least, shift = cuts[:1].view(np.uint64)[0], np.uint64(max(0, width - _BITS))
        count = np.bincount(((cuts.view(np.uint64) - least) >> shift).astype(np.int64))
        before = np.cumsum(count) - count
        # below the greatest int64; if that is a cut, it is in the last bucket
        cut = np.where(count == 1, cuts[np.minimum(before, len(cuts) - 1)], _NONE)
        before[count > 1] = _CROWDED
        return cls(cuts, least, shift, before.astype(np.int32), cut, int(np.count_nonzero(count == 1)))

    def __len__(self) -> int:
        """Return the number of cuts, as an array of cuts does."""
        return len(self.cuts)

    def at_or_below(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return for each value how many cuts are at or below it."""
        bucket: npt.NDArray[np.int64] = np.clip(values, self.cuts[0], self.cuts[-1])
        unsigned = bucket.view(np.uint64)  # same memory: allocating takes longer than computing
        unsigned -= self.least
        unsigned >>= self.shift
        found = self.before.take(bucket)
        again = np.flatnonzero(found < 0)
        found += values >= self.cut.take(bucket)
        found[again] = np.searchsorted(self.cuts, values[again], side="right")
        return found


def in_buckets(cuts: npt.NDArray[np.int64]) -> Buckets | npt.NDArray[np.int64]:
    """Return cuts in buckets, unless they are few, very many, or mostly in crowded buckets."""
    if not _FEWEST <= len(cuts) <= _MOST:
        return cuts
    found = Buckets.of(cuts)
    return found if 2 * found.alone > len(cuts) else cuts
