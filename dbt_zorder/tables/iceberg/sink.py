"""The commits to Iceberg tables that this process makes by Iceberg's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import ICEBERG_CATALOG
from dbt_zorder.stats.iceberg.manifests import IcebergState
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.iceberg.target import IcebergFiles, staged_files, standing_files


class IcebergSink:
    """The commits to Iceberg tables; see ``lakehouse.sink.Sink``."""

    catalog = ICEBERG_CATALOG
    empty_table = None
    heeds_before = False
    rewrites = True

    def made(
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
    ) -> IcebergFiles | str:
        """Return a table that is to be created or replaced, as it will be; or in a few words why only Spark can."""
        return staged_files(spark, table, schema, parts, properties, options)

    def standing(
        self,
        spark: SparkSession,
        table: TableName,
        parts: Sequence[str],
        options: Mapping[str, str],
        before: str | None = None,
        *,
        state: FormatState | None = None,
        replaces_parts: bool = False,
    ) -> IcebergFiles | str:
        """Return a table that is there and is to get files; or in a few words why only Spark can do that."""
        kept = state.kept if isinstance(state, IcebergState) else None
        return standing_files(spark, table, parts, options, before, kept, replaces_parts=replaces_parts)
