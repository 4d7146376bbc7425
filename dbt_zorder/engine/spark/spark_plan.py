"""Completes a plan for rows that Spark places: tasks for small partitions, and a grid if decisions are worth it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_zorder.curve.grid import Grid, fit_grid
from dbt_zorder.engine.spark.decisions import boundaries_allowed
from dbt_zorder.engine.spark.order_grid import OrderGrid, SparkLayout
from dbt_zorder.engine.spark.small_partitions import group_small_partitions
from dbt_zorder.layout.page_order import page_rows_of
from dbt_zorder.layout.plan import Plan


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
