"""Bundles small partitions of a table into one Spark task, as a task for each would be too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_BYTES = 8 << 20
_FILES = 64
"""Limits for the small partitions that one Spark partition writes. A task with all its files open at a time need not
have its rows grouped by partition. It may keep ``spark.sql.maxConcurrentOutputFileWriters`` of them open (100 in our
sessions)."""


def group_small_partitions(files: Sequence[int], sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
    """Assign small partitions of one file each to Spark partitions; return None if none are worth it.

    Args:
        files: number of files of each partition.
        sizes: approximate bytes of each partition.
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
