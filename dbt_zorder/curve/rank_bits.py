"""The encoding ``rank``: ranks of b bits among sampled boundaries, for the curves that have a grid of their own.

A value's rank is the share of rows below it. Every column therefore fills its bits evenly, whatever the distribution
and number of its values. NULL alone has rank 0. NaN has the highest rank if the type has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class RankSlots:
    """Boundaries of one column, and the rank of each slot between them.

    Attributes:
        cuts: ascending sample ranks at which a slot begins. NaN follows them if the type has it.
        codes: increasing numbers below 2^bits: for NULL (0), for values below the first cut, for the slot of each cut,
            and for NaN.
    """

    cuts: list[int]
    codes: list[int]


def rank_slots(values: npt.NDArray[np.int32], bits: int, *, has_nan: bool, nan_rank: int = 0) -> RankSlots:
    """Find the boundaries of one column.

    Args:
        values: sample ranks of the column, shape (rows,), see ``Ranks``.
        bits: number of bits of a rank, at least 2.
        has_nan: whether the type has NaN, in the sample or not.
        nan_rank: rank of NaN in the sample, 0 if the sample has none.
    """
    rows = max(1, len(values))
    counts = np.bincount(values, minlength=1)
    if nan_rank:
        counts = counts[:nan_rank]
    nulls = int(counts[0])
    below = np.cumsum(counts[1:])  # rows up to each rank
    slots = (1 << bits) - 1 - has_nan
    if len(below) <= slots:
        cuts = np.arange(2, len(below) + 1)
    else:
        targets = below[-1] * np.arange(1, slots) / slots
        cuts = np.unique(np.searchsorted(below, targets) + 2)
        cuts = cuts[cuts <= len(below)]
    shares = [nulls, *(nulls + below[cuts - 2])]
    if has_nan:
        shares.append(nulls + (int(below[-1]) if len(below) else 0))
    wanted = 1 + np.asarray(shares, dtype=np.float64) / rows * ((1 << bits) - 1)
    return RankSlots([int(cut) for cut in cuts], [0, *_increasing(wanted, (1 << bits) - 1)])


def _increasing(wanted: npt.NDArray[np.float64], highest: int) -> list[int]:
    """Round to strictly increasing integers between 1 and ``highest``."""
    steps = np.arange(len(wanted))
    codes = np.maximum.accumulate(np.floor(wanted).astype(np.int64) - steps) + steps
    room = highest - steps[::-1]
    return [int(code) for code in np.minimum(codes, room)]
