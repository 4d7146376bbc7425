"""The health of Delta Lake and Iceberg tables, of ours and of other writers, from the formats' own statistics."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.api import health, save_table
from dbt_zorder.errors import ColumnError
from dbt_zorder.spark.catalog import TableName


def test_a_table_of_another_writer(spark: SparkSession, table: TableName, file_format: str) -> None:
    rows = "SELECT /*+ repartition(6) */ id, cast(null AS int) n, concat('k', id % 10) s FROM range(600)"
    spark.sql(f"CREATE TABLE {table.sql} USING {file_format} AS {rows}")
    found = health(spark, str(table), ["id", "n"])
    assert (found.rows, found.without_stats, found.new_files) == (600, 0, None)
    assert found.small_files == found.files > 1
    assert found.columns["id"].depth == pytest.approx(found.files, rel=0.1)
    assert found.columns["n"].unbounded == 0
    assert ("OPTIMIZE" if file_format == "delta" else "rewrite_data_files") in found.command
    assert health(spark, str(table)).columns == {}
    with pytest.raises(ColumnError, match="Did you mean 'id'"):
        health(spark, str(table), "idd")


def test_batches_after_a_whole_layout_are_drift(spark: SparkSession, table: TableName, file_format: str) -> None:
    save_table(spark.range(1000).toDF("id"), str(table), "id", files=4, file_format=file_format)
    found = health(spark, str(table), "id")
    assert (found.files, found.new_files, found.columns["id"].depth) == (4, 0, 1)
    spark.sql(f"INSERT INTO {table.sql} SELECT /*+ coalesce(1) */ id FROM range(1000)")
    after = health(spark, str(table), "id")
    assert after.new_files == after.files - 4 > 0
    assert after.columns["id"].depth > 1
