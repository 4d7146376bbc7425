from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.adapter.messages.catalog_stats import catalog_stats, table_stats
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.parquet.build import build
from tests.support import unique


def test_each_figure_has_all_four_keys() -> None:
    found = catalog_stats("v1", ["a", "b"], Summary(8, 100, 999, {"a": 2.0, "b": 3.25, "other": 8.0}))
    ids = {key.split(":")[1] for key in found}
    assert ids == {"zorder_by", "zorder_files", "zorder_point_query", "zorder_version", "rows", "bytes"}
    assert {key for key in found if key.startswith("stats:rows:")} == {
        f"stats:rows:{part}" for part in ("label", "value", "description", "include")
    }
    assert found["stats:zorder_by:value"] == "a, b"
    assert found["stats:zorder_point_query:value"] == "a 2 of 8; b 3.2 of 8"
    assert found["stats:rows:value"] == 100


def test_they_are_those_of_the_version_that_is_served(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("figures"))
    report = build(spark, spark.range(100).toDF("id"), BuildRequest(table, LayoutSpec(by=("`ID`",), files=4)))
    info = describe(spark, table)
    assert info is not None
    found = table_stats(spark, table, info)
    assert found["stats:zorder_version:value"] == report.version
    assert (found["stats:zorder_files:value"], found["stats:rows:value"]) == (4, 100)
    assert (found["stats:zorder_by:value"], found["stats:zorder_point_query:value"]) == ("ID", "id 1 of 4")


def test_a_table_of_somebody_else_has_none(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("plain"))
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT 1 AS a")
    info = describe(spark, table)
    assert info is not None
    assert table_stats(spark, table, info) == {}
