"""Row numbers, and the slices of equal numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
"""Row numbers, shape (rows,)."""


def group_slices(numbers: npt.NDArray[Any]) -> dict[int, slice]:
    """Return the slice of each distinct number in an ascending array."""
    edges = [*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)]
    return {int(numbers[start]): slice(start, end) for start, end in pairwise(edges)}
