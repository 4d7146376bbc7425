"""Which format a table is of: the one place that knows all of them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.stats.summary import absent
from dbt_zorder.tables.base import Table
from dbt_zorder.tables.delta.table import DeltaTable
from dbt_zorder.tables.iceberg.table import IcebergTable
from dbt_zorder.tables.lakehouse.table import LakehouseTable
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.table import ParquetTable

PARQUET = "parquet"
LAKEHOUSE: dict[str, type[LakehouseTable]] = {"delta": DeltaTable, "iceberg": IcebergTable}
"""Formats with statistics and an atomic write of their own."""


def open_table(spark: SparkSession, name: TableName) -> Table | None:
    """Return the table of a name, None if there is none.

    What is of no format of ours, as a view or a table of CSV, is a ``ParquetTable`` whose ``info`` says so.
    """
    info = describe(spark, name)
    return None if info is None else table_of(spark, name, info)


def table_of(spark: SparkSession, name: TableName, info: TableInfo) -> Table:
    """Return the same of a table of which the catalog was just asked."""
    return _make(spark, name, info.provider, info)


def for_format(spark: SparkSession, request: BuildRequest, info: TableInfo | None = None) -> Table:
    """Return the table that a request builds, of the format that it asks for.

    Args:
        spark: the session.
        request: what to build.
        info: what the catalog says of what has the name now, where it was just asked.
    """
    return _make(spark, request.table, request.file_format, info)


def lakehouse_table(spark: SparkSession, request: BuildRequest) -> LakehouseTable:
    """Return the table of a request for a format that has a MERGE of its own."""
    return LAKEHOUSE[request.file_format](spark, request.table, None, drop_table)


def existing(table: Table | None, name: TableName) -> Table:
    """Return a table that is there.

    Raises:
        ZorderError: it is not.
    """
    if table is None:
        raise ZorderError(absent(name))
    return table


def _make(spark: SparkSession, name: TableName, provider: str, info: TableInfo | None) -> Table:
    kind = LAKEHOUSE.get(provider)
    return ParquetTable(spark, name, info) if kind is None else kind(spark, name, info, drop_table)
