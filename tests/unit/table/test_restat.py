from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName
from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.pruning import scan
from dbt_zorder.scan_metrics import scan_metrics
from dbt_zorder.table.restat import rebuild_stats
from tests.support import unique


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    """Return a table that Spark wrote by itself, in four files by range."""
    name = TableName(database, unique("plain"))
    spark.sql(
        f"CREATE TABLE {name.sql} USING parquet AS "
        "SELECT /*+ repartition_by_range(4, id) */ id, id % 7 AS g FROM range(1000)"
    )
    return name


def files_read(spark: SparkSession, table: TableName, predicate: str) -> int:
    df = scan(spark, table.sql, predicate).selectExpr("count(*)")
    df.collect()
    return scan_metrics(df).files


def test_a_foreign_table_is_pruned_once_it_has_stats(spark: SparkSession, table: TableName) -> None:
    assert files_read(spark, table, "id = 3") == 4
    assert rebuild_stats(spark, table, ["id"]) == 4
    assert files_read(spark, table, "id = 3") == 1
    assert spark.table(f"{table}__zorder_stats").count() == 4


def test_files_that_came_later_are_read_until_the_stats_are_rebuilt(spark: SparkSession, table: TableName) -> None:
    rebuild_stats(spark, table, ["id", "g"])
    spark.sql(f"INSERT INTO {table.sql} SELECT 3 AS id, 0 AS g")
    assert scan(spark, table.sql, "id = 3").count() == 2
    assert files_read(spark, table, "id = 3") == 2
    assert rebuild_stats(spark, table) == 5, "the columns are those of the stats that are there"
    assert files_read(spark, table, "id = 500 and g = 3") == 1


def test_columns_must_be_named_the_first_time(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ZorderError, match="no stats yet"):
        rebuild_stats(spark, table)


def test_an_unknown_column_is_named_and_old_stats_stay(spark: SparkSession, table: TableName) -> None:
    rebuild_stats(spark, table, ["id"])
    with pytest.raises(ColumnError, match="Did you mean 'id'"):
        rebuild_stats(spark, table, ["idd"])
    assert files_read(spark, table, "id = 3") == 1


def test_only_parquet_tables_have_stats(spark: SparkSession, database: str) -> None:
    with pytest.raises(ZorderError, match="does not exist"):
        rebuild_stats(spark, TableName(database, "nowhere"), ["id"])
    view = TableName(database, unique("view"))
    spark.sql(f"CREATE VIEW {view.sql} AS SELECT 1 AS id")
    with pytest.raises(ZorderError, match="view"):
        rebuild_stats(spark, view, ["id"])


def test_names_with_dots_are_kept(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("dotted"))
    spark.sql(
        f"CREATE TABLE {table.sql} USING parquet AS SELECT id AS `a.b`, named_struct('c.d', id) AS st FROM range(9)"
    )
    rebuild_stats(spark, table, ["`a.b`", "st.`c.d`"])
    rebuild_stats(spark, table)
    schema = spark.table(f"{table}__zorder_stats").schema["columns"].dataType
    assert schema.fieldNames() == ["a.b", "st.c.d"]  # type: ignore[attr-defined]
