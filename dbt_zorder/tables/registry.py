"""Choose the format of a table; only this module lists all formats."""

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
"""Maps the formats that have statistics and atomic commits of their own."""


def open_table(spark: SparkSession, name: TableName) -> Table | None:
    """Return the table of this name; None if there is none.

    A relation of another format, such as a view or a CSV table, is a ``ParquetTable`` whose ``info`` says so.
    """
    info = describe(spark, name)
    return None if info is None else table_of(spark, name, info)


def table_of(spark: SparkSession, name: TableName, info: TableInfo) -> Table:
    """Return the table that ``info`` describes, as the catalog has just returned it."""
    return _make(spark, name, info.provider, info)


def for_format(spark: SparkSession, request: BuildRequest, info: TableInfo | None = None) -> Table:
    """Return the table that a request builds, in the requested format.

    Args:
        spark: the session.
        request: what to build.
        info: current catalog description of the name, if just read.
    """
    return _make(spark, request.table, request.file_format, info)


def lakehouse_table(spark: SparkSession, request: BuildRequest) -> LakehouseTable:
    """Return the table of a request in a format that supports MERGE."""
    return LAKEHOUSE[request.file_format](spark, request.table, None, drop_table)


def existing(table: Table | None, name: TableName) -> Table:
    """Return ``table``, which must exist.

    Raises:
        ZorderError: it does not.
    """
    if table is None:
        raise ZorderError(absent(name))
    return table


def _make(spark: SparkSession, name: TableName, provider: str, info: TableInfo | None) -> Table:
    kind = LAKEHOUSE.get(provider)
    return ParquetTable(spark, name, info) if kind is None else kind(spark, name, info, drop_table)
