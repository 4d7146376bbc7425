"""Ranks of sampled values, by which a tree cuts columns of every type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int32]
"""Ranks in shape (rows, columns): 0 for NULL, else the value's dense rank in the sample, from 1."""

Mass = npt.NDArray[np.float64]
"""Share of non-null rows up to each rank, shape (greatest rank + 1,); ``mass[0]`` is 0."""


def cumulative_mass(values: npt.NDArray[np.int32]) -> Mass:
    """Return the ``Mass`` of one column of ranks; all zero if every row is NULL."""
    counts = np.bincount(values, minlength=1).astype(np.float64)
    counts[0] = 0.0
    total = counts.sum()
    return np.asarray(np.cumsum(counts) / (total if total else 1.0))
