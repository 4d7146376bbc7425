from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, schema_location
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import increment
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.stats_view import stats_table
from tests.support import unique


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    name = TableName(database, unique("t"))
    make(spark, name, 10)
    return name


def make(spark: SparkSession, table: TableName, rows: int) -> None:
    build(spark, spark.range(rows).toDF("id"), BuildRequest(table, LayoutSpec(by=["id"], files=2)))


def root(spark: SparkSession, table: TableName) -> Path:
    return Path(schema_location(spark, table.schema).removeprefix("file:")) / f"{table.identifier}__zorder"


def rename(spark: SparkSession, old: TableName, new: TableName) -> None:
    spark.sql(f"ALTER TABLE {old.sql} RENAME TO {new.sql}")
    rename_stats(spark, old, new)


def test_a_table_goes_with_its_stats_and_versions(spark: SparkSession, table: TableName) -> None:
    make(spark, table, 20)
    assert drop_table(spark, table)
    assert describe(spark, table) is None
    assert describe(spark, stats_table(table)) is None
    assert not root(spark, table).exists()


def test_what_is_not_ours_stays_in_the_root(spark: SparkSession, table: TableName) -> None:
    (root(spark, table) / "notes").mkdir()
    assert drop_table(spark, table)
    assert [path.name for path in root(spark, table).iterdir()] == ["notes"]


@pytest.mark.parametrize("ddl", ["CREATE TABLE {t} USING parquet AS SELECT 1 AS a", "CREATE VIEW {t} AS SELECT 1 AS a"])
def test_other_tables_are_left_alone(spark: SparkSession, database: str, ddl: str) -> None:
    other = TableName(database, unique("o"))
    assert not drop_table(spark, other)
    spark.sql(ddl.format(t=other.sql))
    assert not drop_table(spark, other)
    assert spark.table(other.sql).count() == 1


def test_stats_follow_a_renamed_table(spark: SparkSession, table: TableName) -> None:
    new = TableName(table.schema, unique("n"))
    rename(spark, table, new)
    assert spark.table(new.sql).count() == 10
    assert spark.table(stats_table(new).sql).selectExpr("sum(row_count)").first() == (10,)
    assert describe(spark, stats_table(table)) is None
    rename_stats(spark, TableName(table.schema, "never"), new)


def test_dropping_a_renamed_table_keeps_the_new_one_of_its_old_name(spark: SparkSession, table: TableName) -> None:
    backup = TableName(table.schema, unique("backup"))
    rename(spark, table, backup)
    make(spark, table, 20)
    assert drop_table(spark, backup)
    assert spark.table(table.sql).count() == 20


def test_dropping_a_table_keeps_one_that_was_renamed_away_from_it(spark: SparkSession, table: TableName) -> None:
    backup = TableName(table.schema, unique("backup"))
    rename(spark, table, backup)
    make(spark, table, 20)
    assert drop_table(spark, table)
    assert spark.table(backup.sql).count() == 10


def test_what_was_renamed_by_plain_sql_is_served_on(spark: SparkSession, table: TableName) -> None:
    backup = TableName(table.schema, unique("backup"))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {backup.sql}")
    make(spark, table, 20)
    assert drop_table(spark, table)
    assert spark.table(backup.sql).count() == 10
    assert drop_table(spark, backup)
    assert not root(spark, table).exists()


def test_versions_in_a_former_root_go_with_the_table(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    request = BuildRequest(table, LayoutSpec(by=["id"], files=2), location_root=str(tmp_path))
    build(spark, spark.range(10), request)
    assert root(spark, table).exists()
    assert drop_table(spark, table)
    assert not root(spark, table).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def cloned(spark: SparkSession, table: TableName) -> Iterator[TableName]:
    """A table in another schema, made over the very version that ``table`` is served from."""
    schema = unique("dev")
    spark.sql(f"CREATE DATABASE {schema}")
    clone, info = TableName(schema, table.identifier), describe(spark, table)
    assert info is not None
    spark.sql(f"CREATE TABLE {clone.sql} USING parquet LOCATION '{info.location}'")
    yield clone
    spark.sql(f"DROP DATABASE {schema} CASCADE")


def test_dropping_a_clone_keeps_the_version_of_the_table_that_it_was_made_of(
    spark: SparkSession, table: TableName, cloned: TableName
) -> None:
    assert drop_table(spark, cloned)
    assert describe(spark, cloned) is None
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert spark.table(table.sql).count() == 10


def test_a_batch_for_a_clone_does_not_go_into_the_table_that_it_was_made_of(
    spark: SparkSession, table: TableName, cloned: TableName
) -> None:
    request = BuildRequest(cloned, LayoutSpec(by=["id"], files=2))
    for end, appended in ((15, False), (20, True)):
        report = increment(spark, spark.range(end - 5, end), request, Batch(may_rewrite=False))
        assert (report.appended is not None) == appended
        spark.sql(f"REFRESH TABLE {table.sql}")
        assert spark.table(table.sql).count() == 10
        assert spark.table(cloned.sql).count() == end
