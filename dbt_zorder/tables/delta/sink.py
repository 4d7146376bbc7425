"""The commits to Delta tables that this process makes by Delta's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import DELTA_CATALOG
from dbt_zorder.stats.delta.log import DeltaState
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.delta.new_table import delta_id, make_delta, new_delta
from dbt_zorder.tables.delta.target import DeltaFiles, replaced_delta, standing_delta
from dbt_zorder.tables.delta.transaction import Replaces


class EmptyDelta:
    """A Delta table is made without rows, by Delta's own API: what creates one takes no files."""

    def make(
        self,
        spark: SparkSession,
        table: TableName,
        of: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
    ) -> str:
        """Make a table whose name nothing has, which is to become ``of``, and return its id."""
        return make_delta(spark, table, of, schema, parts, properties)

    def id_of(self, spark: SparkSession, table: TableName) -> str:
        """Return what distinguishes a table from another one that had or will have its name."""
        return delta_id(spark, table)

    def filled(
        self, spark: SparkSession, table: TableName, parts: Sequence[str], options: Mapping[str, str]
    ) -> DeltaFiles | str:
        """Return the empty table that is to get files; or in a few words why only Spark can write them."""
        return standing_delta(spark, table, parts, options)


class DeltaSink:
    """The commits to Delta tables; see ``lakehouse.sink.Sink``."""

    catalog = DELTA_CATALOG
    empty_table = EmptyDelta()
    heeds_before = True
    rewrites = False

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
    ) -> DeltaFiles | str:
        """Return a table that is to be created or replaced, as it will be; or in a few words why only Spark can."""
        if is_new:
            return new_delta(spark, table, schema, parts, properties, options)
        return replaced_delta(spark, table, parts, properties, options, before)

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
    ) -> DeltaFiles | str:
        """Return a table that is there and is to get files; or in a few words why only Spark can do that."""
        if before is not None:
            return "only Delta itself replaces files by others of the same rows"
        replaces = Replaces.PARTITIONS if replaces_parts else Replaces.NOTHING
        snapshot = state.snapshot if isinstance(state, DeltaState) else None
        return standing_delta(spark, table, parts, options, replaces, snapshot)
