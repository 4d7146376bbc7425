from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.api import health, save_table
from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.diagnose import measure_health


def test_a_clustered_table_is_healthy_until_files_come(spark: SparkSession, table: TableName) -> None:
    save_table(spark.range(1000).selectExpr("id", "id % 7 AS k"), str(table), ["id"], files=4)
    found = health(spark, str(table))
    assert (found.files, found.rows, found.new_files) == (4, 1000, 0)
    assert found.columns["id"].depth == 1
    size = found.bytes // 4
    assert not health(spark, str(table), file_size=size).gains
    spark.sql(f"INSERT INTO {table.sql} SELECT /*+ repartition(6) */ id, 0 FROM range(1000)")
    after = health(spark, str(table), file_size=size)
    assert (after.files, after.new_files) == (10, 6)
    assert after.columns["id"].depth > 5
    assert after.columns["id"].at_build == 1
    assert after.gains
    assert after.command == f"dbt run-operation zorder_optimize --args '{{model: {table}, dry_run: false}}'"


def test_a_table_of_another_writer_gets_the_command(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT /*+ repartition(8) */ id, id `a b` FROM range(100)")
    found = health(spark, str(table), ["id", "`a b`"])
    assert found.files == found.small_files == 8
    assert found.command.endswith(f'\'{{model: {table}, zorder_by: ["id", "`a b`"], dry_run: false}}\'')
    assert health(spark, str(table)).command == ""


def test_columns_of_the_model_are_examined_where_the_table_has_none(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT id FROM range(100)")
    found = measure_health(spark, table, (), LayoutSpec(by=["id"]), is_modelled=True)
    assert list(found.columns) == ["id"]
    assert "zorder_by" not in found.command


def test_arguments_that_are_not_allowed_are_named(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ZorderError, match="does not exist"):
        health(spark, str(table))
    with pytest.raises(ConfigError, match="columns is 3, but it must be a column name"):
        health(spark, str(table), 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="file_size is 'big'"):
        health(spark, str(table), file_size="big")
