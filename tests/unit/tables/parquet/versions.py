"""Versions of a table that tests of swaps write by hand, under names as a build gives them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.swap import Definition

V1, V2, V3 = (f"v20240101T00000000{number}-0123abcd" for number in (1, 2, 3))
Write = Callable[[str, str], Definition]
"""Writes the rows of a query as a version, and returns what the catalog is to know of it."""


def content(spark: SparkSession, table: TableName) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.table(table.sql).collect())
