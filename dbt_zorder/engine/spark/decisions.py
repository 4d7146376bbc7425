"""A tree of few files as nested decisions: where a row goes, and its place there, as expressions of its own columns.

``IF(key >= cut, IF(...), IF(...))`` uses each value once, so it needs no column for the node that a row has come to.
Rows are shuffled as they are and sorted by an expression that Spark evaluates once a row: nothing is added before the
shuffle and nothing dropped behind the sort, so that no row is copied for it. The text grows with the tree, and Spark
compiles it anew for each; deep trees take the descent, which looks its cuts up (see ``descent``). A NULL key is above
no cut.
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
"""Of a tree that is written as decisions: they are sent to each task."""
AS_A_DESCENT = 30
"""Decisions that take as long to compile as the descent's own steps."""
VALUES_A_DECISION = 150_000
"""So many values that are not copied save what it takes to compile one decision, some 4 ms (docs/decisions/010)."""


def boundaries_allowed(df: DataFrame, layout: Layout) -> int:
    """Return how many boundaries a grid may have beside the files' cuts; negative if not even those are worth it."""
    if layout.partition_columns or layout.files > MOST_FILES:
        return -1
    columns = len(leaf_names(df.schema))
    # where a hash parts rows, it reads all of their columns
    hashed = columns * int((layout.file_count > 1).sum())
    # each column of the descent's projections, of which decisions need none, takes as long to compile as a decision
    return AS_A_DESCENT + columns + layout.rows * columns // VALUES_A_DECISION - layout.files - hashed


def decidable(df: DataFrame, layout: SparkLayout) -> bool:
    """Tell whether a layout is best written as decisions: few files, one tree, and an order that needs no node."""
    if layout.curve is not None:
        alone = layout.curve.curve == "linear" and not layout.curve.cuts_files
        return alone and boundaries_allowed(df, layout) >= 0
    return layout.grid is not None


def apply_decisions(df: DataFrame, layout: SparkLayout) -> DataFrame:
    """Do what ``apply_layout`` does with a layout that is ``decidable``."""
    placed = df.repartition(layout.tasks, f.expr(_file_sql(df, layout)))
    order = order_sql(layout.keys) if layout.grid is None else [_place_sql(layout, layout.grid)]
    return placed.sortWithinPartitions(*map(f.expr, order))


def _file_sql(df: DataFrame, layout: SparkLayout) -> str:
    """Return SQL text of the integer that Spark's partitioning by hash sends to the partition of a row's file."""
    slot_of_file = slots(layout.tasks)

    def leaf(cell: int) -> str:
        first, count = int(layout.first_file[cell]), int(layout.file_count[cell])
        if count == 1:
            # behind the last file that is reached, cells count as of one that is not there
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


def _place_sql(layout: Layout, grid: OrderGrid) -> str:
    """Return SQL text of what orders rows inside their file."""
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
