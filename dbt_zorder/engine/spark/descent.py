"""The way of a row down the forest, as SQL that Spark compiles: no UDF, no Python worker.

A step is two levels: ``node = 4 * node + (key >= cut ? 2 + (key >= cut on the right) : (key >= cut on the left))``. The
cuts of a level are constant arrays, one a column, NULL where another column cuts; a NULL key is above no cut and goes
left.

Every step is used more than once by the next, and Spark's elimination of common subexpressions evaluates it once, in a
method of its own. One projection a level would be inlined into a single Java method, which HotSpot does not compile
beyond 8,000 bytes of bytecode; the method of a single level would be short enough for HotSpot to inline it, and what it
inlines counts up to the same 8,000 bytes, behind which the copying of a wide row's columns is no longer inlined. Above
100 columns, where Spark generates no code for whole stages and each projection copies the row, steps share one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.spark import linear
from dbt_zorder.engine.spark.curve_sql import add_curve, most_uses, shared, steps_at_once
from dbt_zorder.engine.spark.decisions import apply_decisions, decidable
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
class Names:
    """Temporary columns, none of which the query has."""

    partition: str
    node: str
    curve: str

    @classmethod
    def beside(cls, df: DataFrame) -> Names:
        """Return names that no column of ``df`` begins with."""
        taken = tuple(name.lower() for name in df.columns)
        prefix = "__zorder"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        return cls(f"{prefix}_part", f"{prefix}_node", f"{prefix}_curve")

    @property
    def all(self) -> list[str]:
        """Every temporary name."""
        return [self.partition, self.node, self.curve]


def apply_layout(df: DataFrame, layout: Layout, open_files: int = 0) -> DataFrame:
    """Send every row of ``df`` to its file's partition, sorted along the curve inside it.

    The result has the columns of ``df``, and one Spark partition a file, or for several files that are small partitions
    of the table. Spark neither coalesces nor splits them, since their number is explicit.

    Args:
        df: the rows.
        layout: of them.
        open_files: that a task of the write may have. Where rows are written ``as_they_come`` they are sorted by one
            integer, which Spark does by its digits, where it compares rows by two columns (6 M rows: 12.8 s beside 17).
    """
    placing = SparkLayout.beside(layout)
    if decidable(df, placing):
        return apply_decisions(df, placing)
    names = Names.beside(df)
    steps = add_node(df, layout, names)
    curve = layout.curve
    # an expression and no column: what is shuffled stays as small as can be
    placed = steps.repartition(placing.tasks, f.expr(_slot(placing, names, df)))
    order = [] if as_they_come(layout, open_files) else [f.expr(column) for column in layout.partition_columns]
    if curve is None:
        # to compare rows by their runs, behind another column, takes longer than runs are worth
        runs = layout.runs if not order else ()
        order.append(f.expr(in_runs(names.node, _NODE_BITS, layout.keys, runs)))
    elif curve.curve == "linear":
        order += [f.expr(sql) for sql in order_sql(layout.keys)]
    else:
        if not curve.cuts_files:  # behind the shuffle, which then need not carry it
            placed = add_curve(placed, curve, layout.keys, names.curve)
        order.append(f.col(names.curve))
    return placed.sortWithinPartitions(*order).drop(*names.all)


def as_they_come(layout: Layout, open_files: int) -> bool:
    """Tell whether a write of a partitioned table need not have its rows partition by partition.

    Args:
        layout: of the rows.
        open_files: that a task may have. As soon as it has as many, Spark sorts what follows by partition alone, even
            if it is sorted so, and whatever of that goes to disk loses its order inside the partition.
    """
    tasks = SparkLayout.beside(layout).task_of_file
    together = 1 if tasks is None else int(np.bincount(tasks).max(initial=1))
    return open_files > together


def add_node(df: DataFrame, layout: Layout, names: Names) -> DataFrame:
    """Add a column with the node of the last level that each row comes to; ``names`` are those beside ``df``."""
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
    """DataSize the steps out over projections; a step is named by its first level.

    A step is used once by the next one's multiplication and once by each of its comparisons, so the text of a chunk
    grows with the product of these numbers, which is kept below ``most``.
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
    """Go down from a node of ``level``: two levels, or one if it is the last."""
    top = _at_or_above(comparisons(layout, level, curve_column), node)
    if level + 1 == len(layout.levels):
        return f"2 * ({node}) + CAST({top} AS INT)"
    left, right = (
        _at_or_above(comparisons(layout, level + 1, curve_column, slice(side, None, 2)), node) for side in (0, 1)
    )
    return f"4 * ({node}) + IF({top}, 2 + CAST({right} AS INT), CAST({left} AS INT))"


def comparisons(layout: Layout, level: int, curve_column: str, nodes: slice = slice(None)) -> list[tuple[str, str]]:
    """Return SQL text of what is compared at a level: a row's value, and the constant array of cuts, by node.

    Args:
        curve_column: where rows have what ``add_curve`` added.
        nodes: those of the level that are asked for; what cuts none of them is left out.
    """
    chosen = {number: values[nodes] for number, values in layout.levels[level].items()}
    cuts = {number: values for number, values in chosen.items() if any(value is not None for value in values)}
    if layout.curve is None or not layout.curve.cuts_files:
        return [(layout.keys[n].expression, key_array(values, layout.keys[n].carrier)) for n, values in cuts.items()]
    if layout.curve.curve == "linear":
        carriers = [layout.keys[number].carrier for number in chosen]
        # a tuple has all its keys, also one that is NULL in every cut
        return [(curve_column, linear.tuple_array(list(chosen.values()), carriers))] if cuts else []
    return [(curve_column, key_array(values, layout.curve.carrier)) for values in cuts.values()]


def _at_or_above(compared: list[tuple[str, str]], node: str) -> str:
    """Return SQL text of whether a row is at or above its node's cut, never NULL; one column at most cuts a node."""
    # <=> true makes NULL false; the node stands before the branches too, so that it is known as common
    return " OR ".join(f"(({value} >= get({cuts}, {node})) <=> true)" for value, cuts in compared) or "false"


def _to_root(df: DataFrame, layout: Layout, names: Names) -> DataFrame:
    """Start at a row's tree: a branch-free binary search for its partition's hash among the known ones.

    A partition that the counting pass did not see lands in a neighbour's tree, which costs order and loses nothing.
    """
    steps = df.withColumn(names.node, f.lit(0))
    if not layout.partition_columns:
        return steps
    steps = steps.withColumn(names.partition, f.expr(layout.partition_hash))
    at_once = steps_at_once(df, 2)
    for top in range((len(layout.partition_hashes) - 1).bit_length(), 0, -at_once):
        node = names.node
        for bit in range(top - 1, max(-1, top - 1 - at_once), -1):
            # only every 2^bit-th hash is asked for: each step of a projection names about as many in all
            hashes = key_array(layout.partition_hashes[:: 1 << bit].tolist(), "bigint")
            ahead = f"coalesce({names.partition} >= get({hashes}, shiftright({node}, {bit}) + 1), false)"
            node = f"(({node}) + {1 << bit} * CAST({ahead} AS INT))"
        steps = steps.withColumn(names.node, f.expr(shared(node)))
    return steps


def _slot(layout: SparkLayout, names: Names, df: DataFrame) -> str:
    """Return SQL text of the integer that Spark's partitioning by hash sends to the Spark partition of a row's file."""
    slot_of_file = slots(layout.tasks)
    if layout.task_of_file is not None:
        slot_of_file = slot_of_file[layout.task_of_file]
    cell = f"shiftright({names.node}, {len(layout.levels) - layout.file_levels})"
    reached = layout.reached.tolist()

    def looked_up(values: npt.NDArray[np.int32]) -> str:
        # a deep tree has many cells that no row comes to
        kept = [value if here else None for value, here in zip(values.tolist(), reached, strict=True)]
        return f"get({int_table(kept)}, {cell})"

    if not (layout.file_count > 1).any():
        # behind the last file that is reached, cells count as of one that is not there
        return looked_up(slot_of_file[np.minimum(layout.first_file, layout.files - 1)])
    spread = looked_up(layout.file_count)
    place = f"CASE WHEN {spread} > 1 THEN {row_hash(df.schema, spread)} ELSE 0 END"
    return f"get({int_table(slot_of_file.tolist())}, {looked_up(layout.first_file)} + {place})"
