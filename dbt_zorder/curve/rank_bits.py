"""Ranks of b bits among sampled boundaries: the encoding of the curves that have a grid of their own.

A value's rank tells the share of rows below it, so that every column fills its bits evenly, however it is distributed
and however few values it has. NULL has rank 0 to itself, and NaN, where the type has it, the highest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class RankSlots:
    """The boundaries of one column, and what rank lies between them.

    Attributes:
        cuts: ascending sample ranks at which a slot begins; NaN, if the type has it, comes after them.
        codes: increasing numbers below 2^bits: of NULL (0), of what is below the first cut, of each cut's slot on, and
            of NaN.
    """

    cuts: list[int]
    codes: list[int]


def rank_slots(values: npt.NDArray[np.int32], bits: int, *, has_nan: bool, nan_rank: int = 0) -> RankSlots:
    """Find the boundaries of one column.

    Args:
        values: shape (rows,): see ``Ranks``.
        bits: of a rank, at least 2.
        has_nan: whether the type has NaN, in the sample or not.
        nan_rank: the rank of NaN in the sample, 0 if it has none.
    """
    rows = max(1, len(values))
    counts = np.bincount(values, minlength=1)
    if nan_rank:
        counts = counts[:nan_rank]
    nulls = int(counts[0])
    below = np.cumsum(counts[1:])  # rows of each rank and less
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
    """Round to integers that increase strictly, from 1 at least to ``highest`` at most."""
    steps = np.arange(len(wanted))
    codes = np.maximum.accumulate(np.floor(wanted).astype(np.int64) - steps) + steps
    room = highest - steps[::-1]
    return [int(code) for code in np.minimum(codes, room)]
