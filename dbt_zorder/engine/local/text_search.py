"""Searches among ordered texts by comparing their first bytes as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.engine.local.buckets import Buckets, in_buckets
from dbt_zorder.engine.local.search import binary_search

_FEWEST = 16
"""Minimum number of cuts: fewer are faster to compare as a whole."""
_BYTES = 8
_SIGN = np.uint64(1 << 63)
_KEPT = np.asarray([0, *(((1 << 8 * kept) - 1) << 8 * (_BYTES - kept) for kept in range(1, _BYTES + 1))], np.uint64)
"""Masks that keep the first bytes of a text, by its length, in a big-endian number of eight bytes."""


@dataclass(frozen=True)
class TextCuts:
    """Ordered binaries, indexed by the eight bytes after their common prefix.

    Finding 65,536 texts of 16 bytes among 1,000 cuts takes 5 ms, in place of 12 ms when comparing whole texts.

    Attributes:
        cuts: ordered cuts.
        shared: common prefix of all cuts.
        beginnings: distinct numbers of the eight bytes after the prefix, in order.
        upto: shape (beginnings + 1,): number of cuts among the first so many beginnings.
        longest: bytes of the longest cut.
    """

    cuts: pa.Array
    shared: bytes
    beginnings: Buckets | npt.NDArray[np.int64]
    upto: npt.NDArray[np.int32]
    longest: int

    @classmethod
    def of(cls, cuts: pa.Array) -> TextCuts:
        """Index ordered binaries, at least one, without NULL."""
        shared = _shared(cuts[0].as_py(), cuts[-1].as_py())
        distinct, count = np.unique(_beginnings(cuts, len(shared)), return_counts=True)
        upto = np.append(0, np.cumsum(count)).astype(np.int32)
        return cls(cuts, shared, in_buckets(distinct), upto, pc.max(pc.binary_length(cuts)).as_py())

    def __len__(self) -> int:
        """Return the number of cuts, as an array of cuts does."""
        return len(self.cuts)

    @property
    def is_selective(self) -> bool:
        """Return whether most cuts have a beginning of their own."""
        return 2 * len(self.beginnings) > len(self.cuts)

    def shortened(self, values: pa.Array) -> pa.Array:
        """Return values truncated to the longest cut, if that saves much; the rest decides no comparison."""
        if values.nbytes <= (self.longest + _BYTES) * len(values):
            return values
        return pc.binary_slice(values, 0, self.longest)

    def at_or_below(self, values: pa.Array) -> npt.NDArray[np.int32]:
        """Return for each value how many cuts are at or below it, any number for NULL."""
        if not len(values):  # an empty array may lack its offsets
            return np.zeros(0, dtype=np.int32)
        place: npt.NDArray[Any]
        beginnings = _beginnings(values, len(self.shared))
        if isinstance(self.beginnings, Buckets):
            distinct, place = self.beginnings.cuts, self.beginnings.at_or_below(beginnings)
        else:
            distinct, place = self.beginnings, np.searchsorted(self.beginnings, beginnings, side="right")
        found = self.upto.take(place)
        # After equal bytes the following ones decide. A value below all cuts has place 0, and never the last beginning.
        again = distinct[place - 1] == beginnings
        if self.shared:
            others = pc.invert(pc.starts_with(values, pattern=self.shared))
            again |= pc.fill_null(others, False).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(again)
        found[rows] = binary_search(pc.fill_null(values.take(pa.array(rows)), b""), self.cuts)
        return found


def text_cuts(cuts: pa.Array) -> TextCuts | pa.Array:
    """Return ordered binaries as ``TextCuts``, unless they are few, or most share their beginning."""
    if len(cuts) < _FEWEST:
        return cuts
    found = TextCuts.of(cuts)
    return found if found.is_selective else cuts


def _shared(one: bytes, other: bytes) -> bytes:
    """Return the common prefix."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return bytes(byte for byte, _ in alike)


def _beginnings(values: pa.Array, skip: int) -> npt.NDArray[np.int64]:
    """Return eight bytes of each text after the first ``skip`` as an ordered number, any number for NULL.

    Missing bytes count as 0.
    """
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :][: len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([data, np.zeros(skip + _BYTES, dtype=np.uint8)])
    # overlapping words, one at each byte
    words = np.ndarray((len(data) + skip + 1,), dtype="<u8", buffer=padded, strides=(1,))
    found: npt.NDArray[np.uint64] = words[offsets[:-1].astype(np.int64) + (skip - int(offsets[0]))]
    found = found.byteswap(inplace=True)
    found &= _KEPT.take(np.clip(np.diff(offsets) - skip, 0, _BYTES))
    found ^= _SIGN
    return found.view(np.int64)
