from __future__ import annotations

import numpy as np
import pytest

from dbt_zorder.layout.bundles import bundles


@pytest.mark.parametrize(
    ("files", "counts", "open_files", "tasks"),
    [
        ([1, 1, 1], [10, 10, 10], 0, [0, 0, 0]),
        ([1, 1, 1], [10, 10, 999_999], 0, [0, 0, 1]),
        ([1, 3, 1, 1], [10, 900, 10, 10], 0, [0, 1, 2, 3, 4, 4]),
        ([2, 2], [500, 500], 0, None),
        ([1], [5], 0, None),
        ([1] * 130, [1] * 130, 0, [0] * 64 + [1] * 64 + [2] * 2),
        ([1] * 130, [1] * 130, 100, [0] * 64 + [1] * 64 + [2] * 2),
        # a task that has three files open sorts whatever follows
        ([1] * 5, [1] * 5, 3, [0, 0, 1, 1, 2]),
        ([1] * 3, [1] * 3, 2, None),
        ([1] * 3, [1] * 3, 1, None),
    ],
)
def test_small_partitions_share_a_task(
    files: list[int], counts: list[int], open_files: int, tasks: list[int] | None
) -> None:
    found = bundles(files, np.asarray(counts), row_bytes=100.0, open_files=open_files)
    assert (None if found is None else found.tolist()) == tasks
