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

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.columns import leaf_names
from dbt_zorder.curve.slots import slots
from dbt_zorder.layout.literals import int_array, key_array
from dbt_zorder.layout.plan import Layout
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
    slot: str

    @classmethod
    def beside(cls, df: DataFrame) -> Names:
        """Return names that no column of ``df`` begins with."""
        taken = tuple(name.lower() for name in df.columns)
        prefix = "__zorder"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        return cls(f"{prefix}_part", f"{prefix}_node", f"{prefix}_slot")

    @property
    def all(self) -> list[str]:
        """Every temporary name."""
        return [self.partition, self.node, self.slot]


def apply_layout(df: DataFrame, layout: Layout) -> DataFrame:
    """Send every row of ``df`` to its file's partition, sorted along the curve inside it.

    The result has the columns of ``df``, and one Spark partition a file. Spark neither coalesces nor splits them, since
    their number is explicit.
    """
    forest = layout.forest
    names = Names.beside(df)
    steps = _to_root(df, layout, names)
    most_uses = _MOST_USES if len(leaf_names(df.schema)) < _WIDE else _MOST_USES_WIDE
    for first, last in _chunks(layout, most_uses):
        node = names.node
        for level in range(first, last):
            node = _next_node(layout, level, node)
        columns = {names.node: f.expr(_shared(node))}
        if last == forest.file_levels:
            steps = steps.withColumns(columns)
            columns = {}
        elif first == forest.file_levels:
            columns[names.slot] = _slot(layout, names, df)
        steps = steps.withColumns(columns)
    if len(forest.cuts) == forest.file_levels:
        steps = steps.withColumn(names.slot, _slot(layout, names, df))
    placed = steps.repartition(forest.files, names.slot)
    order = [*(f.expr(column) for column in layout.partition_columns), f.col(names.node)]
    return placed.sortWithinPartitions(*order).drop(*names.all)


def _shared(expression: str) -> str:
    """Write an integer expression twice, so that it counts as common and gets a Java method of its own."""
    return f"({expression}) | ({expression})"


def _chunks(layout: Layout, most_uses: int) -> list[tuple[int, int]]:
    """Share the levels out over projections, as [first, last) pairs; one ends where the file is decided.

    A level is used once by the doubling and once by each column that cuts in the next level, so the text of a chunk
    grows with the product of these numbers, which is kept below ``most_uses``.
    """
    forest = layout.forest
    chunks: list[tuple[int, int]] = []
    first, uses = 0, 1
    for level, cuts in enumerate(forest.cuts):
        here = 1 + int(cuts.any(axis=1).sum())
        if level > first and (uses * here > most_uses or level == forest.file_levels):
            chunks.append((first, level))
            first, uses = level, 1
        uses *= here
    if forest.cuts:
        chunks.append((first, len(forest.cuts)))
    return chunks


def _next_node(layout: Layout, level: int, node: str) -> str:
    cuts = layout.forest.cuts[level]
    steps = [f"2 * ({node})"]
    for column, key in enumerate(layout.keys):
        if cuts[column].any():
            values = [
                None if cut == 0 else layout.sample.cut_value(column, cut, key.carrier) for cut in cuts[column].tolist()
            ]
            # <=> true makes NULL false without a branch, behind which nothing common could be told
            steps.append(f"CAST(({key.expression} >= get({key_array(values, key.carrier)}, {node})) <=> true AS INT)")
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


def _slot(layout: Layout, names: Names, df: DataFrame) -> Column:
    """Return the integer that Spark's partitioning by hash sends to the row's file."""
    forest = layout.forest
    number = f"get({int_array(forest.first_file.tolist())}, {names.node})"
    if (forest.file_count > 1).any():
        spread = f"get({int_array(forest.file_count.tolist())}, {names.node})"
        hashed = ", ".join(_hashable(df.schema)) or "0"
        number = f"{number} + CASE WHEN {spread} > 1 THEN CAST(pmod(xxhash64({hashed}), {spread}) AS INT) ELSE 0 END"
    return f.expr(f"get({int_array(slots(forest.files).tolist())}, {number})")


def _hashable(schema: t.StructType) -> list[str]:
    """Return the columns that Spark can hash: all but maps, variants, and what holds one."""
    return [quote_name(field.name) for field in schema.fields if _can_hash(field.dataType)]


def _can_hash(data_type: t.DataType) -> bool:
    if isinstance(data_type, t.StructType):
        return all(_can_hash(field.dataType) for field in data_type.fields)
    if isinstance(data_type, t.ArrayType):
        return _can_hash(data_type.elementType)
    return not isinstance(data_type, t.MapType) and data_type.typeName() != "variant"
