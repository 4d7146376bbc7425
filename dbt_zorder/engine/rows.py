"""Numbers of rows, and where equal ones stand together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
"""Numbers of rows."""


def group_slices(numbers: npt.NDArray[Any]) -> dict[int, slice]:
    """Return where the rows of each number, as of their file, lie among rows in order of these numbers."""
    edges = [*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)]
    return {int(numbers[start]): slice(start, end) for start, end in pairwise(edges)}
