"""Set the properties that keep untruncated bounds of Iceberg columns, and their bloom filters."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive, leaf_names, resolve_all
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats.iceberg.manifests import iceberg_table
from dbt_zorder.tables.lakehouse.properties import check_kept

_BY_COLUMN = ("write.metadata.metrics.column.", "write.parquet.bloom-filter-enabled.column.")


def metrics_modes(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Return the properties that keep untruncated bounds of the z-order columns, and their bloom filters.

    By default, Iceberg truncates strings and keeps no bounds from the 101st column on.
    """
    found = {}
    for key in keys:
        name = f"{_BY_COLUMN[0]}{key.name}"
        mode = request.properties.get(name)
        if mode is None:
            found[name] = "full"
        check_kept([key] if mode in ("none", "counts") else [], request, f"{name} '{mode}'")
    for column in resolve_all(request.bloom, df.schema, sensitive=case_sensitive(df.sparkSession)):
        found[f"{_BY_COLUMN[1]}{column.name}"] = "true"
    return found


def has_whole_bounds(request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
    """Return whether a table stores untruncated bounds of columns."""
    return all(request.properties.get(f"{_BY_COLUMN[0]}{key.name}") in (None, "full") for key in keys)


def forget_columns(spark: SparkSession, table: TableName, schema: StructType) -> None:
    """Remove Iceberg's properties of columns that a table no longer has, which block changes of the table."""
    names = leaf_names(schema)
    stale = [
        name
        for name in iceberg_table(spark, table).properties()
        for prefix in _BY_COLUMN
        if name.startswith(prefix) and name.removeprefix(prefix) not in names
    ]
    if stale:
        listed = ", ".join(quote_string(name) for name in stale)
        spark.sql(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES IF EXISTS ({listed})")
