"""Completes a plan for rows that Spark places: tasks for small partitions, and a grid if decisions are worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.grid import Grid, fit_grid
from dbt_zorder.engine.spark.decisions import boundaries_allowed
from dbt_zorder.engine.spark.order_grid import OrderGrid, SparkLayout
from dbt_zorder.layout.page_order import page_rows_of
from dbt_zorder.layout.plan import Plan

_BUNDLE_BYTES = 8 << 20
_BUNDLE_FILES = 64
"""Limits for the small partitions that one Spark partition writes. A task with all its files open at a time need not
have its rows grouped by partition. It may keep ``spark.sql.maxConcurrentOutputFileWriters`` of them open (100 in our
sessions)."""


@dataclass(frozen=True)
class SparkPlan(Plan):
    """A plan whose layout Spark places rows by.

    Attributes:
        grid: order of rows inside files, in ranks of the sample; None if the forest orders them.
    """

    grid: Grid | None = None


def for_spark(plan: Plan) -> SparkPlan:
    """Return a plan with the tasks that write files, and with a grid for decisions if they are worth it."""
    layout, drawn = plan.layout, plan.drawn
    tasks = None
    if drawn.partition_columns:
        tasks = group_small_partitions(layout.files_of_trees.tolist(), drawn.counts * plan.row_bytes)
    grid = None
    if layout.curve is None:
        pages = drawn.rows / layout.files / page_rows_of(drawn.df.sparkSession, drawn.spec.page_rows)
        grid = fit_grid(plan.forest, drawn.sample.ranks, pages, boundaries_allowed(drawn.df, layout))
    order = OrderGrid.of(grid, drawn.sample, drawn.keys) if grid is not None else None
    placed = SparkLayout.beside(layout, tasks, order)
    return SparkPlan(placed, plan.forest, drawn, plan.row_bytes, grid)


def group_small_partitions(files: Sequence[int], sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
    """Assign small partitions of one file each to Spark partitions; return None if none are worth it.

    Args:
        files: number of files of each partition.
        sizes: approximate bytes of each partition.
    """
    task_of_file: list[int] = []
    task, bundled, size = -1, _BUNDLE_FILES, 0.0
    for number, here in zip(files, sizes.tolist(), strict=True):
        if number > 1 or bundled == _BUNDLE_FILES or size + here > _BUNDLE_BYTES:
            task, bundled, size = task + 1, 0, 0.0
        task_of_file += [task] if number == 1 else list(range(task, task + number))
        if number > 1:
            task, bundled = task + number - 1, _BUNDLE_FILES
        else:
            bundled, size = bundled + 1, size + here
    found = np.asarray(task_of_file, dtype=np.int32)
    return found if found[-1] + 1 < len(found) else None
