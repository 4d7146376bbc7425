"""Ranks of sampled values: what a tree cuts by, whatever the columns' types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int32]
"""Shape (rows, columns): 0 for NULL, else the dense rank of the value among the sample, from 1."""

Mass = npt.NDArray[np.float64]
"""Shape (greatest rank + 1,): the share of non-null rows whose rank is at most the index; ``mass[0]`` is 0."""


def cumulative_mass(values: npt.NDArray[np.int32]) -> Mass:
    """Return the ``Mass`` of one column of ranks; all zero if every row is NULL."""
    counts = np.bincount(values, minlength=1).astype(np.float64)
    counts[0] = 0.0
    total = counts.sum()
    return np.asarray(np.cumsum(counts) / (total if total else 1.0))
