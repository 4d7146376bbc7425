"""The way of a row down the forest, as stacked projections that Spark compiles: no UDF, no Python worker.

Level by level ``node = 2 * node + (key >= cut)``. The cuts of a level are one constant array a column, NULL where
another column cuts; a NULL key is above no cut and goes left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.curve.slots import slots
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.literals import int_array, key_array
from dbt_zorder.layout.plan import Layout
from dbt_zorder.sql import quote_name


@dataclass(frozen=True)
class Names:
    """Temporary columns, none of which the query has."""

    keys: Sequence[str]
    partition: str
    node: str
    slot: str

    @classmethod
    def beside(cls, df: DataFrame, keys: int) -> Names:
        """Return names that no column of ``df`` begins with."""
        taken = tuple(name.lower() for name in df.columns)
        prefix = "__zorder"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        by_key = [f"{prefix}_key{number}" for number in range(keys)]
        return cls(by_key, f"{prefix}_part", f"{prefix}_node", f"{prefix}_slot")

    @property
    def all(self) -> list[str]:
        """Every temporary name."""
        return [*self.keys, self.partition, self.node, self.slot]


def apply_layout(df: DataFrame, layout: Layout) -> DataFrame:
    """Send every row of ``df`` to its file's partition, sorted along the curve inside it.

    The result has the columns of ``df``, and one Spark partition a file. Spark neither coalesces nor splits them, since
    their number is explicit.
    """
    forest = layout.forest
    names = Names.beside(df, len(layout.keys))
    steps = df
    for name, key in zip(names.keys, layout.keys, strict=True):
        steps = steps.withColumn(name, f.expr(key.expression))
    steps = _to_root(steps, layout, names)
    for number, level in enumerate(forest.cuts):
        if number == forest.file_levels:
            steps = steps.withColumn(names.slot, _slot(layout, names, df))
        comparisons = [
            _above_cut(name, key, layout, column, number, names.node)
            for column, (name, key) in enumerate(zip(names.keys, layout.keys, strict=True))
            if level[column].any()
        ]
        above = f"CAST(coalesce({', '.join(comparisons)}, false) AS INT)"
        steps = steps.withColumn(names.node, f.expr(f"2 * {names.node} + {above}"))
    if len(forest.cuts) <= forest.file_levels:
        steps = steps.withColumn(names.slot, _slot(layout, names, df))
    placed = steps.repartition(forest.files, names.slot)
    order = [*(f.expr(column) for column in layout.partition_columns), f.col(names.node)]
    return placed.sortWithinPartitions(*order).drop(*names.all)


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


def _above_cut(name: str, key: Key, layout: Layout, column: int, level: int, node: str) -> str:
    cuts = layout.forest.cuts[level][column].tolist()
    values = [None if cut == 0 else layout.sample.cut_value(column, cut, key.carrier) for cut in cuts]
    return f"{name} >= get({key_array(values, key.carrier)}, {node})"


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
