"""Commit to Iceberg tables from this process, with Iceberg's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import ICEBERG_CATALOG
from dbt_zorder.stats.iceberg.manifests import IcebergState
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.iceberg.target import IcebergTarget, existing_iceberg, staged_iceberg


class IcebergSink:
    """The commits to Iceberg tables; see ``lakehouse.sink.Sink``."""

    catalog = ICEBERG_CATALOG
    empty_table = None
    detects_conflicts = False
    rewrites = True

    def build_target(
        self,
        spark: SparkSession,
        table: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
        options: Mapping[str, str],
        *,
        is_new: bool,
        before: str | None,
    ) -> IcebergTarget | str:
        """Return the table to create or replace as a target of files, or a short reason why only Spark can."""
        return staged_iceberg(spark, table, schema, parts, properties, options)

    def existing_target(
        self,
        spark: SparkSession,
        table: TableName,
        parts: Sequence[str],
        options: Mapping[str, str],
        before: str | None = None,
        *,
        state: FormatState | None = None,
        replaces_parts: bool = False,
    ) -> IcebergTarget | str:
        """Return an existing table as a target of files, or a short reason why only Spark can write them."""
        kept = state.kept if isinstance(state, IcebergState) else None
        return existing_iceberg(spark, table, parts, options, before, kept, replaces_parts=replaces_parts)
