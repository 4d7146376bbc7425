from __future__ import annotations

import numpy as np
import pytest

from dbt_zorder.engine.spark.spark_plan import group_small_partitions


@pytest.mark.parametrize(
    ("files", "counts", "tasks"),
    [
        ([1, 1, 1], [10, 10, 10], [0, 0, 0]),
        ([1, 1, 1], [10, 10, 999_999], [0, 0, 1]),
        ([1, 3, 1, 1], [10, 900, 10, 10], [0, 1, 2, 3, 4, 4]),
        ([2, 2], [500, 500], None),
        ([1], [5], None),
        ([1] * 130, [1] * 130, [0] * 64 + [1] * 64 + [2] * 2),
    ],
)
def test_small_partitions_share_a_task(files: list[int], counts: list[int], tasks: list[int] | None) -> None:
    found = group_small_partitions(files, 100.0 * np.asarray(counts))
    assert (None if found is None else found.tolist()) == tasks
