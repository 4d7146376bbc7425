"""Small partitions of a table that one task of Spark writes, one after another: a task for each would be too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_BYTES = 8 << 20
_FILES = 64
"""What one Spark partition may write of partitions that are smaller than a file: a task whose files are all open at a
time need not have its rows partition by partition, and may keep ``spark.sql.maxConcurrentOutputFileWriters`` of them
open (100 in our sessions)."""


def group_small_partitions(files: Sequence[int], sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
    """Share small partitions of one file each out over Spark partitions; None if none are worth it.

    Args:
        files: of each partition.
        sizes: bytes of each, roughly.
    """
    task_of_file: list[int] = []
    task, bundled, size = -1, _FILES, 0.0
    for number, here in zip(files, sizes.tolist(), strict=True):
        if number > 1 or bundled == _FILES or size + here > _BYTES:
            task, bundled, size = task + 1, 0, 0.0
        task_of_file += [task] if number == 1 else list(range(task, task + number))
        if number > 1:
            task, bundled = task + number - 1, _FILES
        else:
            bundled, size = bundled + 1, size + here
    found = np.asarray(task_of_file, dtype=np.int32)
    return found if found[-1] + 1 < len(found) else None
