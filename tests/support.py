"""What several suites need: settings for a while, names that nobody else has, and a table's content as one number."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.catalog import TableName, schema_location
from dbt_zorder.spark.conf import settings

__all__ = ["checksum", "needs_spark_4", "rows_read", "same_rows", "settings", "unique", "versions"]

needs_spark_4 = pytest.mark.skipif(not hasattr(DataFrame, "toArrow"), reason="a type of Spark 4")


def unique(prefix: str) -> str:
    """Return a name that no other test uses."""
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


def checksum(df: DataFrame) -> tuple[int, int]:
    """Return the number of rows and a sum over all values that does not depend on the order of rows."""
    names = ", ".join("`" + name.replace("`", "``") + "`" for name in df.columns)
    row = df.selectExpr("count(*)", f"coalesce(sum(cast(xxhash64({names}) as decimal(38, 0))), 0)").collect()[0]
    return int(row[0]), int(row[1])


def same_rows(one: DataFrame, other: DataFrame) -> bool:
    """Return whether two queries give the same rows the same number of times."""
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()


def rows_read(df: DataFrame) -> int:
    """Return how many rows the scan of a query that ran gave, before they were filtered."""
    plan: Any = df._jdf
    return int(plan.queryExecution().executedPlan().collectLeaves().apply(0).metrics().apply("numOutputRows").value())


def versions(spark: SparkSession, table: TableName) -> list[str]:
    """Return the versions of a Parquet table that stand in its folder, the oldest first."""
    root = Path(schema_location(spark, table.schema).removeprefix("file:")) / f"{table.identifier}__zorder"
    return sorted(path.name for path in root.iterdir()) if root.exists() else []
