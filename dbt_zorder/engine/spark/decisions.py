"""Writes a tree of few files as nested decisions: a row's file and its place there are expressions of its columns.

``IF(key >= cut, IF(...), IF(...))`` uses each value once, so it needs no column for the current node. Spark shuffles
rows as they are, and sorts them by an expression that it evaluates once a row. No column is added before the shuffle or
dropped after the sort, so no row is copied for it. The text grows with the tree, and Spark compiles each tree's text.
Deep trees use the descent, which looks its cuts up (see ``descent``). A NULL key is above no cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.spark.hash_slots import slots
from dbt_zorder.engine.spark.hashing import row_hash
from dbt_zorder.engine.spark.literals import key_literal
from dbt_zorder.engine.spark.lookup_tables import int_table
from dbt_zorder.engine.spark.order_grid import OrderGrid, SparkLayout
from dbt_zorder.engine.spark.runs import in_runs
from dbt_zorder.layout.keys import Key, KeyValue, order_sql
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.columns import leaf_names

MOST_FILES = 256
"""Maximum files of a tree that is written as decisions, which are sent to each task."""
AS_A_DESCENT = 30
"""Number of decisions that take as long to compile as the descent's own steps."""
VALUES_A_DECISION = 150_000
"""Number of values not copied that saves the time to compile one decision, about 4 ms (docs/decisions/010)."""


def boundaries_allowed(df: DataFrame, layout: Layout) -> int:
    """Return the maximum boundaries of a grid beside the files' cuts; negative if decisions are not worth it at all."""
    if layout.partition_columns or layout.files > MOST_FILES:
        return -1
    columns = len(leaf_names(df.schema))
    # a hash that splits rows reads all of their columns
    hashed = columns * int((layout.file_count > 1).sum())
    # each column of the descent's projections takes as long to compile as a decision, which needs no projection
    return AS_A_DESCENT + columns + layout.rows * columns // VALUES_A_DECISION - layout.files - hashed


def suits_decisions(df: DataFrame, layout: SparkLayout) -> bool:
    """Return whether decisions suit a layout best: few files, one tree, and an order that needs no node."""
    if layout.curve is not None:
        alone = layout.curve.curve == "linear" and not layout.curve.cuts_files
        return alone and boundaries_allowed(df, layout) >= 0
    return layout.grid is not None


def apply_decisions(df: DataFrame, layout: SparkLayout) -> DataFrame:
    """Do what ``apply_layout`` does, for a layout that ``suits_decisions``."""
    placed = df.repartition(layout.tasks, f.expr(_file_sql(df, layout)))
    order = order_sql(layout.keys) if layout.grid is None else [_sort_key_sql(layout, layout.grid)]
    return placed.sortWithinPartitions(*map(f.expr, order))


def _file_sql(df: DataFrame, layout: SparkLayout) -> str:
    """Return SQL text of the integer that Spark's hash partitioning sends to the partition of a row's file."""
    slot_of_file = slots(layout.tasks)

    def leaf(cell: int) -> str:
        first, count = int(layout.first_file[cell]), int(layout.file_count[cell])
        if count == 1:
            # cells after the last reached file have a file number out of range
            return str(slot_of_file[min(first, layout.files - 1)])
        return f"get({int_table(slot_of_file[first : first + count].tolist())}, {row_hash(df.schema, count)})"

    def below(level: int, node: int) -> str:
        if level == layout.file_levels:
            return leaf(node)
        left = below(level + 1, 2 * node)
        cut = layout.cut_of(level, node)
        if cut is None:
            return left
        right = below(level + 1, 2 * node + 1)
        return left if left == right else _decision(*cut, right, left)

    return below(0, 0)


def _sort_key_sql(layout: Layout, grid: OrderGrid) -> str:
    """Return SQL text of the sort key of rows inside their file."""
    bits = sum(max(codes) for codes in grid.codes).bit_length()
    return in_runs(f"({_grid_sql(layout.keys, grid)})", bits, layout.keys, layout.runs)


def _grid_sql(keys: Sequence[Key], grid: OrderGrid) -> str:
    """Return SQL text of a row's cell inside its file."""

    def among(key: Key, boundaries: Sequence[KeyValue], codes: Sequence[int]) -> str:
        if not boundaries:
            return f"{codes[0]}L"
        middle = len(boundaries) // 2
        above = among(key, boundaries[middle + 1 :], codes[middle + 1 :])
        return _decision(key, boundaries[middle], above, among(key, boundaries[:middle], codes[: middle + 1]))

    return (
        " + ".join(
            among(key, boundaries, codes)
            for key, boundaries, codes in zip(keys, grid.boundaries, grid.codes, strict=True)
            if boundaries
        )
        or "0L"
    )


def _decision(key: Key, cut: KeyValue, at_or_above: str, below: str) -> str:
    return f"IF({key.expression} >= {key_literal(cut, key.carrier)}, {at_or_above}, {below})"
