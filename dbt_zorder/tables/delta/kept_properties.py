"""Keep a Delta table's properties when an incremental run replaces all rows: others may have altered them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, properties
from dbt_zorder.spark.conf import REDACTED
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.tables.batch import same_partitions
from dbt_zorder.tables.comments import set_comments
from dbt_zorder.tables.lakehouse.format import NOTHING_KEPT, KeptProperties
from dbt_zorder.tables.schema_change import keeps

_LOG = logging.getLogger("dbt_zorder")
_CHECK = "delta.constraints."
_ITS_OWN = ("delta.min", "delta.feature.", "delta.columnMapping.", "delta.rowTracking.", "delta.dataSkipping")
"""Prefixes of properties that Delta or its writer sets itself."""


def properties_to_keep(spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest) -> KeptProperties:
    """Return what survives when an incremental run replaces all rows of a table by those of ``df``."""
    if info.provider != "delta":
        return NOTHING_KEPT
    existing = spark.table(request.table.sql).schema
    same = len(existing) == len(df.schema) and keeps(existing, df.schema)
    if same and same_partitions(spark, info, request, df.schema):
        return KeptProperties(in_place=True)
    return KeptProperties(properties=_properties(spark, df, request.table))


def set_properties(spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
    """Set the current properties of the model on a table, where they differ."""
    has = properties(spark, table)
    changed = {name: value for name, value in wanted.items() if has.get(name) != value}
    if "comment" in changed:
        set_comments(spark, table, changed.pop("comment"), {})
    if changed:
        listed = ", ".join(f"{quote_string(name)} = {quote_string(value)}" for name, value in changed.items())
        spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({listed})")


def _properties(spark: SparkSession, df: DataFrame, table: TableName) -> dict[str, str]:
    found = {}
    for name, value in _revealed(spark, table).items():
        if name.startswith(_ITS_OWN):
            continue
        if REDACTED in value:
            _LOG.warning("%s loses the property %s, whose value Spark hides from this session", table, name)
            continue
        if name.startswith(_CHECK):
            try:
                df.select(f.expr(value))
            except AnalysisException:
                _LOG.warning("%s loses the constraint %s: CHECK (%s), for want of its columns", table, name, value)
                continue
        found[name] = value
    return found


def _revealed(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return a table's properties; Delta itself supplies those that Spark hides in its list."""
    has = dict(properties(spark, table))
    if any(REDACTED in value for value in has.values()):
        detail = spark.sql(f"DESCRIBE DETAIL {table.sql}").select("properties").first()
        has.update((detail[0] if detail is not None else None) or {})
    return has
