from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import scan, scan_sql
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.conf import CASE_SENSITIVE
from dbt_zorder.spark.scan_metrics import scan_metrics
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import same_rows, settings, unique


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


def test_files_of_other_engines_in_a_version_of_ours_prove_nothing_that_depends_on_the_reader(
    spark: SparkSession, database: str
) -> None:
    table = TableName(database, unique("zordered"))
    query = "SELECT id, cast(id AS int) AS k, date_add(DATE'2020-01-01', cast(id AS int)) AS dt FROM range(100)"
    build(spark, spark.sql(query), BuildRequest(table, LayoutSpec(by=["k", "dt"], files=2)))
    info = describe(spark, table)
    assert info is not None
    folder = Path(info.location.removeprefix("file:"))
    ids = pa.array(range(10), pa.int64())
    other = {"id": ids, "K": pa.array([5] * 10, pa.int32()), "dt": pa.array([date(2020, 1, 6)] * 10)}
    pq.write_table(pa.table(other), folder / "upper.parquet")
    old = {"id": ids, "k": pa.array([7] * 10, pa.int32()), "dt": pa.array([date(1000, 3, 1)] * 10)}
    pq.write_table(pa.table(old), folder / "old.parquet")  # without Spark's word on the calendar
    assert rebuild_stats(spark, table) == 4
    with settings(spark, {CASE_SENSITIVE: "true"}):
        assert scan(spark, table.sql, "k is null").count() == 10
    for day in ("1000-03-01", "1000-02-24"):
        pruned = scan_sql(spark, table.sql, f"dt = date'{day}'")
        for mode in ("CORRECTED", "LEGACY"):
            with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": mode}):
                spark.catalog.refreshTable(table.sql)
                whole = spark.table(table.sql).where(f"dt = date'{day}'")
                assert same_rows(spark.sql(f"SELECT * FROM {pruned}"), whole), (day, mode)
    assert files_read(spark, table, "k = 40") == 2, "one of ours, and the one whose columns are spelled otherwise"


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
