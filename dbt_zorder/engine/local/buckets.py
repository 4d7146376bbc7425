"""Many numbers in order, which others are compared with by look-ups in place of a binary search.

Numbers from the least to the greatest cut go to buckets of one width. Where a bucket has one cut, that is all that is
to be compared. One with more has buckets of its own, between its first cut and its last; what is crowded there, too,
NumPy searches. 65,536 numbers among 1,000 even cuts take 0.3 ms in place of 3.6, among uneven ones 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_BITS = 16
_FEWEST = 16
"""Cuts: fewer are soon searched."""
_FINER = 8
"""So many buckets a cut, at least, has a crowded bucket."""
_MOST = 1 << 17
"""Cuts: more, as of 100,000 files, take longer to part than they spare."""
_CROWDED = np.iinfo(np.int32).min
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Crowded:
    """What is in buckets of more than one cut.

    Attributes:
        first: shape (crowded,): the first cut of each.
        last: shape (crowded,): the last.
        shift: shape (crowded,): bits below those that tell which of its own buckets a number is in.
        start: shape (crowded,): of these among those of all.
        before: shape (own buckets,): as of ``Buckets``; ``_CROWDED`` of one with more than one cut.
        cut: shape (own buckets,): as of ``Buckets``.
        alone: how many cuts have one of these to themselves.
    """

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    shift: npt.NDArray[np.uint64]
    start: npt.NDArray[np.int64]
    before: npt.NDArray[np.int32]
    cut: npt.NDArray[np.int64]
    alone: int

    @classmethod
    def of(cls, cuts: npt.NDArray[np.int64], begin: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> Crowded:
        """Part each stretch of ``count`` cuts from ``begin`` on."""
        first, last = cuts[begin], cuts[begin + count - 1]
        width = last.view(np.uint64) - first.view(np.uint64)
        bits = np.asarray([int(one).bit_length() for one in width.tolist()], dtype=np.int64)
        shift = np.maximum(0, bits - np.ceil(np.log2(_FINER * count)).astype(np.int64)).astype(np.uint64)
        size = ((width >> shift) + np.uint64(1)).astype(np.int64)
        start = np.cumsum(size) - size
        apart = begin - (np.cumsum(count) - count)  # cuts that are not crowded, before each
        of_cut = np.repeat(np.arange(len(begin)), count)
        crowd = cuts[np.repeat(apart, count) + np.arange(len(of_cut))]
        within = (crowd.view(np.uint64) - first[of_cut].view(np.uint64)) >> shift[of_cut]
        held = np.bincount(start[of_cut] + within.astype(np.int64), minlength=int(size.sum()))
        before = np.repeat(apart, size) + np.cumsum(held) - held
        cut = np.where(held == 1, cuts[np.minimum(before, len(cuts) - 1)], _NONE)
        before = np.where(held > 1, _CROWDED, before)
        return cls(first, last, shift, start, before.astype(np.int32), cut, int(np.count_nonzero(held == 1)))

    def at_or_below(
        self, values: npt.NDArray[np.int64], bucket: npt.NDArray[np.int32], cuts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """Return for each value how many cuts are at or below it, by the number of the crowded bucket it is in."""
        first = self.first.take(bucket)
        place = np.maximum(values, first)
        np.minimum(place, self.last.take(bucket), out=place)
        place -= first
        unsigned = place.view(np.uint64)
        unsigned >>= self.shift.take(bucket)
        place += self.start.take(bucket)
        found = self.before.take(place)
        again = np.flatnonzero(found < 0)
        found += values >= self.cut.take(place)
        found[again] = np.searchsorted(cuts, values[again], side="right")
        return found


@dataclass(frozen=True)
class Buckets:
    """Cuts, and the buckets that their range is parted into.

    Attributes:
        cuts: in order.
        least: of them.
        shift: bits below those that tell the bucket.
        before: shape (buckets,): how many cuts lie in buckets before each; of one with more than one cut -1 less its
            number among these.
        cut: shape (buckets,): the cut to compare with; the greatest number there is of a bucket without, or with more.
        crowded: buckets of more than one cut.
        alone: how many cuts are found without a search.
    """

    cuts: npt.NDArray[np.int64]
    least: np.uint64
    shift: np.uint64
    before: npt.NDArray[np.int32]
    cut: npt.NDArray[np.int64]
    crowded: Crowded
    alone: int

    @classmethod
    def of(cls, cuts: npt.NDArray[np.int64]) -> Buckets:
        """Part the range of some cuts into 2**15 to 2**16 buckets, or fewer if it is smaller."""
        width = (int(cuts[-1]) - int(cuts[0])).bit_length()
        least, shift = cuts[:1].view(np.uint64)[0], np.uint64(max(0, width - _BITS))
        count = np.bincount(((cuts.view(np.uint64) - least) >> shift).astype(np.int64))
        before = np.cumsum(count) - count
        # below the greatest number there may be, which if it is a cut is in the last bucket
        cut = np.where(count == 1, cuts[np.minimum(before, len(cuts) - 1)], _NONE)
        several = np.flatnonzero(count > 1)
        crowded = Crowded.of(cuts, before[several], count[several])
        before[several] = -1 - np.arange(len(several))
        alone = int(np.count_nonzero(count == 1)) + crowded.alone
        return cls(cuts, least, shift, before.astype(np.int32), cut, crowded, alone)

    def __len__(self) -> int:
        """Return the number of cuts, as an array of them does."""
        return len(self.cuts)

    def at_or_below(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return for each value how many cuts are at or below it."""
        bucket: npt.NDArray[np.int64] = np.clip(values, self.cuts[0], self.cuts[-1])
        unsigned = bucket.view(np.uint64)  # the same memory: to make more of it takes longer than to reckon
        unsigned -= self.least
        unsigned >>= self.shift
        found = self.before.take(bucket)
        again = np.flatnonzero(found < 0)
        crowded = -1 - found[again]
        found += values >= self.cut.take(bucket)
        if len(again):
            found[again] = self.crowded.at_or_below(values[again], crowded, self.cuts)
        return found


def in_buckets(cuts: npt.NDArray[np.int64]) -> Buckets | npt.NDArray[np.int64]:
    """Return cuts in buckets, unless they are few, very many, or most of them would be searched for all the same."""
    if not _FEWEST <= len(cuts) <= _MOST:
        return cuts
    found = Buckets.of(cuts)
    return found if 2 * found.alone > len(cuts) else cuts
