"""Sends a row down the forest, as SQL that Spark compiles: no UDF, no Python worker.

A step covers two levels: ``node = 4 * node + (key >= cut ? 2 + (key >= right cut) : (key >= left cut))``. The cuts of a
level are constant arrays, one per column, with NULL where another column cuts. A NULL key is above no cut and goes
left.

The next step uses every step more than once. Spark's elimination of common subexpressions evaluates it once, in a
method of its own. Two limits of HotSpot decide how many steps a projection has:

HotSpot does not compile a Java method beyond 8,000 bytes of bytecode. With one projection per level, Spark would inline
all of them into a single method.

HotSpot inlines short methods, and inlined code counts up to the same 8,000 bytes. The method of a single level is that
short, and would prevent inlining the code that copies a wide row's columns.

Above 100 columns, Spark uses no whole-stage code generation and each projection copies the row, so steps share one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.spark import linear
from dbt_zorder.engine.spark.curve_sql import add_curve, most_uses, shared, steps_at_once
from dbt_zorder.engine.spark.decisions import apply_decisions, suits_decisions
from dbt_zorder.engine.spark.hash_slots import slots
from dbt_zorder.engine.spark.hashing import row_hash
from dbt_zorder.engine.spark.literals import key_array
from dbt_zorder.engine.spark.lookup_tables import int_table
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.engine.spark.runs import in_runs
from dbt_zorder.layout.keys import order_sql
from dbt_zorder.layout.layout import Layout

_NODE_BITS = 31


@dataclass(frozen=True)
class TemporaryColumns:
    """Temporary columns that the query does not have."""

    partition: str
    node: str
    curve: str

    @classmethod
    def beside(cls, df: DataFrame) -> TemporaryColumns:
        """Return names that no column of ``df`` begins with."""
        taken = tuple(name.lower() for name in df.columns)
        prefix = "__zorder"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        return cls(f"{prefix}_part", f"{prefix}_node", f"{prefix}_curve")

    @property
    def all(self) -> list[str]:
        """Return every temporary name."""
        return [self.partition, self.node, self.curve]


def apply_layout(df: DataFrame, layout: Layout, open_files: int = 0) -> DataFrame:
    """Send every row of ``df`` to its file's partition, sorted along the curve inside it.

    The result has the columns of ``df``, and one Spark partition per file. Several files that are small partitions of
    the table share one. Spark neither coalesces nor splits them, since their number is explicit.

    Args:
        df: rows.
        layout: layout of the rows.
        open_files: number of files that a write task may keep open. Rows written ``as_they_come`` are sorted by one
            integer, digit by digit. Otherwise Spark compares rows by two columns (6 M rows: 12.8 s and 17 s).
    """
    spark_layout = SparkLayout.beside(layout)
    if suits_decisions(df, spark_layout):
        return apply_decisions(df, spark_layout)
    names = TemporaryColumns.beside(df)
    steps = add_node(df, layout, names)
    curve = layout.curve
    # an expression in place of a column keeps the shuffled rows small
    placed = steps.repartition(spark_layout.tasks, f.expr(_slot(spark_layout, names, df)))
    order = [] if as_they_come(layout, open_files) else [f.expr(column) for column in layout.partition_columns]
    if curve is None:
        # comparing rows by runs after another column costs more than runs save
        runs = layout.runs if not order else ()
        order.append(f.expr(in_runs(names.node, _NODE_BITS, layout.keys, runs)))
    elif curve.curve == "linear":
        order += [f.expr(sql) for sql in order_sql(layout.keys)]
    else:
        if not curve.cuts_files:  # added after the shuffle, which need not move it
            placed = add_curve(placed, curve, layout.keys, names.curve)
        order.append(f.col(names.curve))
    return placed.sortWithinPartitions(*order).drop(*names.all)


def as_they_come(layout: Layout, open_files: int) -> bool:
    """Return whether a write of a partitioned table accepts rows that are not grouped by partition.

    Args:
        layout: layout of the rows.
        open_files: number of files that a task may keep open. Once a task reaches it, Spark sorts the remaining rows by
            partition alone, even if they are sorted already. Rows that this sort spills lose their order inside the
            partition.
    """
    tasks = SparkLayout.beside(layout).task_of_file
    together = 1 if tasks is None else int(np.bincount(tasks).max(initial=1))
    return open_files > together


def add_node(df: DataFrame, layout: Layout, names: TemporaryColumns) -> DataFrame:
    """Add a column with the node that each row reaches at the last level; ``names`` are those beside ``df``."""
    steps = _to_root(df, layout, names)
    if layout.curve is not None and layout.curve.cuts_files:
        steps = add_curve(steps, layout.curve, layout.keys, names.curve)
    for chunk in _chunks(layout, most_uses(df, 1)):
        node = names.node
        for level in chunk:
            node = _step(layout, level, node, names.curve)
        steps = steps.withColumn(names.node, f.expr(shared(node)))
    return steps


def _chunks(layout: Layout, most: int) -> list[list[int]]:
    """Distribute the steps over projections; a step is named by its first level.

    The next step uses a step once in its multiplication and once in each comparison. The text of a projection grows
    with the product of these numbers, which stays below ``most``.
    """
    chunks: list[list[int]] = []
    uses = 1
    for level in range(0, len(layout.levels), 2):
        below = len(layout.levels[level + 1]) if level + 1 < len(layout.levels) else 0
        here = 1 + len(layout.levels[level]) + 2 * below
        if not chunks or uses * here > most:
            chunks.append([])
            uses = 1
        chunks[-1].append(level)
        uses *= here
    return chunks


def _step(layout: Layout, level: int, node: str, curve_column: str) -> str:
    """Return SQL text that goes down from a node of ``level``: two levels, or one if it is the last."""
    top = _at_or_above(comparisons(layout, level, curve_column), node)
    if level + 1 == len(layout.levels):
        return f"2 * ({node}) + CAST({top} AS INT)"
    left, right = (
        _at_or_above(comparisons(layout, level + 1, curve_column, slice(side, None, 2)), node) for side in (0, 1)
    )
    return f"4 * ({node}) + IF({top}, 2 + CAST({right} AS INT), CAST({left} AS INT))"


def comparisons(layout: Layout, level: int, curve_column: str, nodes: slice = slice(None)) -> list[tuple[str, str]]:
    """Return SQL text of the comparisons at a level: pairs of a row's value and the constant array of cuts by node.

    Args:
        curve_column: column that ``add_curve`` added.
        nodes: nodes of the level to compare at; columns that cut none of them are left out.
    """
    chosen = {number: values[nodes] for number, values in layout.levels[level].items()}
    cuts = {number: values for number, values in chosen.items() if any(value is not None for value in values)}
    if layout.curve is None or not layout.curve.cuts_files:
        return [(layout.keys[n].expression, key_array(values, layout.keys[n].carrier)) for n, values in cuts.items()]
    if layout.curve.curve == "linear":
        carriers = [layout.keys[number].carrier for number in chosen]
        # a tuple has all its keys, even one that is NULL in every cut
        return [(curve_column, linear.tuple_array(list(chosen.values()), carriers))] if cuts else []
    return [(curve_column, key_array(values, layout.curve.carrier)) for values in cuts.values()]


def _at_or_above(compared: list[tuple[str, str]], node: str) -> str:
    """Return SQL text of whether a row is at or above its node's cut, never NULL; at most one column cuts a node."""
    # <=> true makes NULL false; the node also precedes the branches, so that Spark finds it common
    return " OR ".join(f"(({value} >= get({cuts}, {node})) <=> true)" for value, cuts in compared) or "false"


def _to_root(df: DataFrame, layout: Layout, names: TemporaryColumns) -> DataFrame:
    """Start at a row's tree: a branch-free binary search for its partition's hash among those of the layout.

    Rows of a partition that the count did not see go to a neighbour's tree. That costs order and loses no row.
    """
    steps = df.withColumn(names.node, f.lit(0))
    if not layout.partition_columns:
        return steps
    steps = steps.withColumn(names.partition, f.expr(layout.partition_hash))
    at_once = steps_at_once(df, 2)
    for top in range((len(layout.partition_hashes) - 1).bit_length(), 0, -at_once):
        node = names.node
        for bit in range(top - 1, max(-1, top - 1 - at_once), -1):
            # this bit only needs every 2^bit-th hash, which keeps the steps of a projection short
            hashes = key_array(layout.partition_hashes[:: 1 << bit].tolist(), "bigint")
            ahead = f"coalesce({names.partition} >= get({hashes}, shiftright({node}, {bit}) + 1), false)"
            node = f"(({node}) + {1 << bit} * CAST({ahead} AS INT))"
        steps = steps.withColumn(names.node, f.expr(shared(node)))
    return steps


def _slot(layout: SparkLayout, names: TemporaryColumns, df: DataFrame) -> str:
    """Return SQL text of the integer that Spark's hash partitioning sends to the Spark partition of a row's file."""
    slot_of_file = slots(layout.tasks)
    if layout.task_of_file is not None:
        slot_of_file = slot_of_file[layout.task_of_file]
    cell = f"shiftright({names.node}, {len(layout.levels) - layout.file_levels})"
    reached = layout.reached.tolist()

    def looked_up(values: npt.NDArray[np.int32]) -> str:
        # a deep tree has many cells that no row reaches
        kept = [value if here else None for value, here in zip(values.tolist(), reached, strict=True)]
        return f"get({int_table(kept)}, {cell})"

    if not (layout.file_count > 1).any():
        # cells after the last reached file have a file number out of range
        return looked_up(slot_of_file[np.minimum(layout.first_file, layout.files - 1)])
    spread = looked_up(layout.file_count)
    place = f"CASE WHEN {spread} > 1 THEN {row_hash(df.schema, spread)} ELSE 0 END"
    return f"get({int_table(slot_of_file.tolist())}, {looked_up(layout.first_file)} + {place})"
