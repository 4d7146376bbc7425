"""The way of a row down the forest, as SQL that Spark compiles: no UDF, no Python worker.

Level by level ``node = 2 * node + (key >= cut)``. The cuts of a level are one constant array a column, NULL where
another column cuts; a NULL key is above no cut and goes left.

Several levels share one projection: each level then occurs in the next as often as it is used there, and Spark's
elimination of common subexpressions evaluates it once, in a method of its own. One projection a level would be inlined
into a single Java method, which HotSpot does not compile beyond 8,000 bytes of bytecode, and above 100 columns, where
Spark generates no code for whole stages, each would copy the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.columns import leaf_names
from dbt_zorder.curve.slots import slots
from dbt_zorder.curve.tables import int_table
from dbt_zorder.layout.curve_key import add_curve, shared
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.linear import order_sql
from dbt_zorder.layout.literals import key_array
from dbt_zorder.sql import quote_name

_MOST_USES = 4
_MOST_USES_WIDE = 32
"""Of a level within one projection, below and above the number of fields where Spark stops to generate whole stages."""
_WIDE = 95


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


def apply_layout(df: DataFrame, layout: Layout) -> DataFrame:
    """Send every row of ``df`` to its file's partition, sorted along the curve inside it.

    The result has the columns of ``df``, and one Spark partition a file, or for several files that are small partitions
    of the table. Spark neither coalesces nor splits them, since their number is explicit.
    """
    names = Names.beside(df)
    steps = add_node(df, layout, names)
    curve = layout.curve
    number = _file_number(layout, names, df)
    # an expression and no column: what is shuffled stays as small as can be
    placed = steps.repartition(layout.tasks, f.expr(f"get({int_table(_slots(layout))}, {number})"))
    order = [f.expr(column) for column in layout.partition_columns]
    if curve is None:
        order.append(f.col(names.node))
    elif curve.curve == "linear":
        order += [f.expr(sql) for sql in order_sql(layout.keys)]
    else:
        if not curve.cuts_files:  # behind the shuffle, which then need not carry it
            placed = add_curve(placed, curve, layout.keys, names.curve, _most_uses(df))
        order.append(f.col(names.curve))
    return placed.sortWithinPartitions(*order).drop(*names.all)


def add_node(df: DataFrame, layout: Layout, names: Names) -> DataFrame:
    """Add a column with the node of the last level that each row comes to; ``names`` are those beside ``df``."""
    most_uses = _most_uses(df)
    steps = _to_root(df, layout, names)
    if layout.curve is not None and layout.curve.cuts_files:
        steps = add_curve(steps, layout.curve, layout.keys, names.curve, most_uses)
    for first, last in _chunks(layout, most_uses):
        node = names.node
        for level in range(first, last):
            node = _next_node(layout, level, node, names.curve)
        steps = steps.withColumn(names.node, f.expr(shared(node)))
    return steps


def _most_uses(df: DataFrame) -> int:
    return _MOST_USES if len(leaf_names(df.schema)) < _WIDE else _MOST_USES_WIDE


def _chunks(layout: Layout, most_uses: int) -> list[tuple[int, int]]:
    """Share the levels out over projections, as [first, last) pairs.

    A level is used once by the doubling and once by each column that cuts in the next level, so the text of a chunk
    grows with the product of these numbers, which is kept below ``most_uses``.
    """
    chunks: list[tuple[int, int]] = []
    first, uses = 0, 1
    for level, cuts in enumerate(layout.levels):
        here = 1 + len(cuts)
        if level > first and uses * here > most_uses:
            chunks.append((first, level))
            first, uses = level, 1
        uses *= here
    if layout.levels:
        chunks.append((first, len(layout.levels)))
    return chunks


def _next_node(layout: Layout, level: int, node: str, curve_column: str) -> str:
    steps = [f"2 * ({node})"]
    for value, cuts in layout.comparisons(level, curve_column):
        # <=> true makes NULL false without a branch, behind which nothing common could be told
        steps.append(f"CAST(({value} >= get({cuts}, {node})) <=> true AS INT)")
    return " + ".join(steps)


def _to_root(df: DataFrame, layout: Layout, names: Names) -> DataFrame:
    """Start at a row's tree: a branch-free binary search for its partition's hash among the known ones.

    A partition that the counting pass did not see lands in a neighbour's tree, which costs order and loses nothing.
    """
    steps = df.withColumn(names.node, f.lit(0))
    if not layout.partition_columns:
        return steps
    hashes = key_array(layout.partition_hashes.tolist(), "bigint")
    steps = steps.withColumn(names.partition, f.expr(layout.partition_hash))
    stride = 1 << max(0, len(layout.partition_hashes) - 1).bit_length() >> 1
    while stride:
        ahead = f"coalesce({names.partition} >= get({hashes}, {names.node} + {stride}), false)"
        steps = steps.withColumn(names.node, f.expr(f"{names.node} + {stride} * CAST({ahead} AS INT)"))
        stride >>= 1
    return steps


def _slots(layout: Layout) -> list[int]:
    """Return for every file the integer that Spark's partitioning by hash sends to its Spark partition."""
    found = slots(layout.tasks)
    if layout.task_of_file is not None:
        found = found[layout.task_of_file]
    return [int(slot) for slot in found]


def _file_number(layout: Layout, names: Names, df: DataFrame) -> str:
    """Return SQL text of the number of a row's file."""
    cell = f"shiftright({names.node}, {len(layout.levels) - layout.file_levels})"
    number = f"get({int_table(layout.first_file.tolist())}, {cell})"
    if (layout.file_count > 1).any():
        spread = f"get({int_table(layout.file_count.tolist())}, {cell})"
        hashed = ", ".join(_hashable(df.schema)) or "0"
        number = f"{number} + CASE WHEN {spread} > 1 THEN CAST(pmod(xxhash64({hashed}), {spread}) AS INT) ELSE 0 END"
    return number


def _hashable(schema: t.StructType) -> list[str]:
    """Return the columns that Spark can hash: all but maps, variants, and what holds one."""
    return [quote_name(field.name) for field in schema.fields if _can_hash(field.dataType)]


def _can_hash(data_type: t.DataType) -> bool:
    if isinstance(data_type, t.StructType):
        return all(_can_hash(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return _can_hash(data_type.elementType)
    return not isinstance(data_type, t.MapType) and data_type.typeName() != "variant"
