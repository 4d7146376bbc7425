"""Properties of a table in Delta Lake or Iceberg: the user's, and those by which z-order columns keep statistics."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructType

from dbt_zorder.errors import ConfigError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn, all_columns, case_sensitive, leaf_names, resolve_all
from dbt_zorder.spark.files import exists
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats.delta.values import has_statistics
from dbt_zorder.stats.iceberg.manifests import iceberg_table

_LOG = logging.getLogger("dbt_zorder")

DELTA_STATS = "delta.dataSkippingStatsColumns"
DELTA_INDEXED = "delta.dataSkippingNumIndexedCols"
DELTA_DEFAULT = 32
"""Which columns a Delta table keeps statistics of: by name, or the first so many, and how many those are by default."""
_BY_COLUMN = ("write.metadata.metrics.column.", "write.parquet.bloom-filter-enabled.column.")


def table_properties(
    df: DataFrame, table: TableName, request: BuildRequest, keys: Sequence[ResolvedColumn], *, is_new: bool
) -> dict[str, str]:
    """Return the properties of a table: the user's, comment, statistics of the z-order columns, and a new one's place.

    Raises:
        ConfigError: the user's leave a z-order column without statistics.
    """
    found = dict(request.properties)
    if request.location_root and is_new:  # a table that is there stays where it is
        found["location"] = _place(df.sparkSession, table, request, request.location_root.rstrip("/"))
    if request.comment:
        found["comment"] = request.comment
    kept = _delta_statistics if request.file_format == "delta" else _iceberg_metrics
    return {**found, **kept(df, request, keys)}


def _place(spark: SparkSession, table: TableName, request: BuildRequest, root: str) -> str:
    """Return the folder of a new table: its name's own, also where it is written under another name to be renamed."""
    place = f"{root}/{request.table.identifier}"
    if table == request.table or not exists(spark, place):
        return place
    beside = f"{root}/{table.identifier}"
    _LOG.warning("%s is put into %s, since there are other files in %s", request.table, beside, place)
    return beside


def _delta_statistics(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Name the columns that Delta keeps statistics of, where its first 32 do not hold all that are z-ordered by."""
    partitions = {column.name for column in partition_columns(df.sparkSession, df.schema, request)}
    counted = [leaf for leaf in leaves(df.schema) if leaf.path[0] not in partitions]
    chosen = request.properties.get(DELTA_STATS)
    if chosen is not None:
        named = {name.strip().replace("`", "").lower() for name in chosen.split(",")}
        _check_kept([key for key in keys if not is_named(key, named)], request, f"{DELTA_STATS} '{chosen}'")
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
        _check_kept(missing, request, f"{DELTA_INDEXED} '{first}'")
    if not missing:
        return {}
    listed = [leaf for leaf in [*missing, *counted[:count]] if has_statistics(leaf.data_type)]
    return {DELTA_STATS: ",".join(leaf.sql for leaf in listed)}


def _first_leaf(column: ResolvedColumn) -> ResolvedColumn:
    return leaves(column.data_type, column.path)[0] if isinstance(column.data_type, StructType) else column


def _iceberg_metrics(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Keep whole bounds of the z-order columns, where Iceberg would cut strings, or leave out the 101st column."""
    found = {}
    for key in keys:
        name = f"{_BY_COLUMN[0]}{key.name}"
        mode = request.properties.get(name)
        if mode is None:
            found[name] = "full"
        _check_kept([key] if mode in ("none", "counts") else [], request, f"{name} '{mode}'")
    for column in resolve_all(request.bloom, df.schema, sensitive=case_sensitive(df.sparkSession)):
        found[f"{_BY_COLUMN[1]}{column.name}"] = "true"
    return found


def has_whole_bounds(request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
    """Tell whether a table keeps bounds of the z-order columns as they are; Delta shortens text."""
    if request.file_format == "delta":
        return not any(isinstance(key.data_type, StringType) for key in keys)
    return all(request.properties.get(f"{_BY_COLUMN[0]}{key.name}") in (None, "full") for key in keys)


def _check_kept(missing: Sequence[ResolvedColumn], request: BuildRequest, given: str) -> None:
    if missing:
        msg = (
            f"The table property {given} keeps no statistics of '{missing[0].name}', which zorder_by names: no reader "
            f"could skip a file of {request.table} by it. Leave the property out, or add the column."
        )
        raise ConfigError(msg)


def is_named(key: ResolvedColumn, named: set[str]) -> bool:
    """Tell whether a column is among some names, by itself or by a struct that it is in."""
    path = [part.lower() for part in key.path]
    return any(".".join(path[:end]) in named for end in range(1, len(path) + 1))


def leaves(schema: StructType, path: tuple[str, ...] = ()) -> list[ResolvedColumn]:
    """Return all columns in the order in which Delta counts them: struct leaves one by one."""
    return [column for column in all_columns(schema, path) if not isinstance(column.data_type, StructType)]


def forget_columns(spark: SparkSession, request: BuildRequest, schema: StructType) -> None:
    """Remove what Iceberg's properties say of columns that a table has no longer, which keep it from being altered."""
    if request.file_format != "iceberg":
        return
    names = leaf_names(schema)
    stale = [
        name
        for name in iceberg_table(spark, request.table).properties()
        for prefix in _BY_COLUMN
        if name.startswith(prefix) and name.removeprefix(prefix) not in names
    ]
    if stale:
        listed = ", ".join(quote_string(name) for name in stale)
        spark.sql(f"ALTER TABLE {request.table.sql} UNSET TBLPROPERTIES IF EXISTS ({listed})")
