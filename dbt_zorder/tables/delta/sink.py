"""Commit to Delta tables from this process, with Delta's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import DELTA_CATALOG
from dbt_zorder.stats.delta.log import DeltaState
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.delta.new_table import delta_id, make_delta, new_delta
from dbt_zorder.tables.delta.target import DeltaTarget, existing_delta, replaced_delta
from dbt_zorder.tables.delta.transaction import Replaces


class EmptyDelta:
    """The creation of an empty Delta table with Delta's own API, which accepts no files."""

    def make(
        self,
        spark: SparkSession,
        table: TableName,
        of: TableName,
        schema: StructType,
        parts: Sequence[str],
        properties: Mapping[str, str],
    ) -> str:
        """Create an empty table under a free name, to be renamed to ``of``, and return its id."""
        return make_delta(spark, table, of, schema, parts, properties)

    def id_of(self, spark: SparkSession, table: TableName) -> str:
        """Return the id that distinguishes a table from earlier or later tables of the same name."""
        return delta_id(spark, table)

    def filled_target(
        self, spark: SparkSession, table: TableName, parts: Sequence[str], options: Mapping[str, str]
    ) -> DeltaTarget | str:
        """Return the empty table as a target of files, or a short reason why only Spark can write them."""
        return existing_delta(spark, table, parts, options)


class DeltaSink:
    """The commits to Delta tables; see ``lakehouse.sink.Sink``."""

    catalog = DELTA_CATALOG
    empty_table = EmptyDelta()
    detects_conflicts = True
    rewrites = False

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
    ) -> DeltaTarget | str:
        """Return the table to create or replace as a target of files, or a short reason why only Spark can."""
        if is_new:
            return new_delta(spark, table, schema, parts, properties, options)
        return replaced_delta(spark, table, parts, properties, options, before)

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
    ) -> DeltaTarget | str:
        """Return an existing table as a target of files, or a short reason why only Spark can write them."""
        if before is not None:
            return "only Delta itself replaces files by others of the same rows"
        replaces = Replaces.PARTITIONS if replaces_parts else Replaces.NOTHING
        snapshot = state.snapshot if isinstance(state, DeltaState) else None
        return existing_delta(spark, table, parts, options, replaces, snapshot)
