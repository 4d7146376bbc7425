from __future__ import annotations

import logging

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.analyze import Analyzed, analyze_again, analyzed
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build
from tests.support import settings, unique
from tests.unit.tables.parquet.batches import made, rows


def make(spark: SparkSession, table: TableName, query: str) -> None:
    build(spark, spark.sql(query), BuildRequest(table, LayoutSpec(by=["a"], files=2)))


def found(spark: SparkSession, table: TableName) -> Analyzed | None:
    return analyzed(spark, table, describe(spark, table))


def test_statistics_are_there_again_after_a_build(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("t"))
    assert found(spark, table) is None
    make(spark, table, "SELECT id AS a, id AS `b c` FROM range(10)")
    spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS FOR COLUMNS `b c`")
    assert found(spark, table) == Analyzed(("b c",))
    make(spark, table, "SELECT id AS a, id AS `b c` FROM range(20)")
    assert found(spark, table) == Analyzed(("b c",))
    info = describe(spark, table)
    assert info is not None
    assert info.statistics.endswith(" 20 rows")
    make(spark, table, "SELECT id AS a FROM range(30)")  # a column that had some is gone
    assert found(spark, table) == Analyzed()


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_partitioned_table_has_statistics_where_the_planner_goes_by_rows(
    spark: SparkSession, database: str, by_rows: bool
) -> None:
    """Else its bytes would be those of the partitions that the catalog knows: none."""
    table = TableName(database, unique("t"))
    request = BuildRequest(table, LayoutSpec(by=["a"], files=1, partition_by=["p"]))
    with settings(spark, {"spark.sql.cbo.enabled": str(by_rows).lower()}):
        build(spark, spark.sql("SELECT id AS a, id % 2 AS p FROM range(10)"), request)
        spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS FOR COLUMNS a")
        build(spark, spark.sql("SELECT id AS a, id % 2 AS p FROM range(20)"), request)
        assert found(spark, table) == (Analyzed(("a",)) if by_rows else None)
        size = spark.table(table.sql)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert int(str(size)) > 0


def test_a_partitioned_table_is_not_taken_for_empty_after_a_batch(spark: SparkSession, database: str) -> None:
    """Spark would broadcast a table of no bytes; the catalog knows none of its partitions to add their bytes up."""
    table = TableName(database, unique("t"))

    def size() -> int:
        return int(str(spark.table(table.sql)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    wanted = made(spark, table, rows(0, 2000), files=1, partition_by=("p",))
    before = size()
    append(spark, spark.sql(rows(2000, 2100)), wanted)
    assert size() > before > 0


def test_statistics_that_cannot_be_computed_are_a_warning(
    spark: SparkSession, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "dbt_zorder"):
        analyze_again(spark, TableName(database, "never"), Analyzed(), [], partitioned=False)
    assert "could not be computed again" in caplog.text
