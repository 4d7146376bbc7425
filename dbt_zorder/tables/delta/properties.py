"""Choose the columns of a Delta table that keep statistics."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from dbt_zorder.errors import ConfigError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.columns import ResolvedColumn, all_columns
from dbt_zorder.stats.delta.values import has_statistics
from dbt_zorder.tables.lakehouse.properties import check_kept

DELTA_STATS = "delta.dataSkippingStatsColumns"
DELTA_INDEXED = "delta.dataSkippingNumIndexedCols"
DELTA_DEFAULT = 32


def statistics_columns(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Return the property that names the statistics columns, if Delta's first 32 lack a z-order column."""
    partitions = {column.name for column in partition_columns(df.sparkSession, df.schema, request)}
    counted = [leaf for leaf in leaves(df.schema) if leaf.path[0] not in partitions]
    chosen = request.properties.get(DELTA_STATS)
    if chosen is not None:
        named = {name.strip().replace("`", "").lower() for name in chosen.split(",")}
        check_kept([key for key in keys if not is_named(key, named)], request, f"{DELTA_STATS} '{chosen}'")
        return {}
    first = request.properties.get(DELTA_INDEXED)
    count = DELTA_DEFAULT
    if first is not None:
        try:
            count = int(first)
        except ValueError as exc:
            msg = (
                f"{request.table}: the table property {DELTA_INDEXED} is {first!r}, but it must be a whole number, or "
                "-1 for all columns."
            )
            raise ConfigError(msg) from exc
    if count < 0:
        return {}
    indexed = [leaf.path for leaf in counted[:count]]
    # a struct is ordered by its first leaf
    missing = [leaf for key in keys if (leaf := _first_leaf(key)).path not in indexed]
    if first is not None:
        check_kept(missing, request, f"{DELTA_INDEXED} '{first}'")
    if not missing:
        return {}
    listed = [leaf for leaf in [*missing, *counted[:count]] if has_statistics(leaf.data_type)]
    return {DELTA_STATS: ",".join(leaf.sql for leaf in listed)}


def _first_leaf(column: ResolvedColumn) -> ResolvedColumn:
    return leaves(column.data_type, column.path)[0] if isinstance(column.data_type, StructType) else column


def has_whole_bounds(keys: Sequence[ResolvedColumn]) -> bool:
    """Return whether Delta stores untruncated bounds of columns; it truncates text."""
    return not any(isinstance(key.data_type, StringType) for key in keys)


def is_named(key: ResolvedColumn, named: set[str]) -> bool:
    """Return whether names contain a column, or a struct around it."""
    path = [part.lower() for part in key.path]
    return any(".".join(path[:end]) in named for end in range(1, len(path) + 1))


def leaves(schema: StructType, path: tuple[str, ...] = ()) -> list[ResolvedColumn]:
    """Return all columns in Delta's order of counting, with struct leaves one by one."""
    return [column for column in all_columns(schema, path) if not isinstance(column.data_type, StructType)]
