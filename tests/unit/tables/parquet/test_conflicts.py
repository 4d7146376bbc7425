from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, location_of
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.conflicts import beside_vacuum, check_absent, check_base, check_served, check_version
from dbt_zorder.tables.parquet.retention.tombstone import raise_tombstone, take_away
from dbt_zorder.tables.two_step_swap import previous_of
from tests.support import unique


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    name = TableName(database, unique("t"))
    make(spark, name, 10)
    return name


def make(spark: SparkSession, table: TableName, rows: int) -> None:
    build(spark, spark.range(rows), BuildRequest(table, LayoutSpec(by=["id"], files=2)))


def test_a_version_without_a_file_or_its_marker_is_not_served(spark: SparkSession, table: TableName) -> None:
    place = location_of(spark, table)
    folder = Path(urlsplit(place).path)
    check_version(spark, place)
    shutil.move(folder / "_zorder_version", folder / "_other")
    with pytest.raises(BuildError, match="_zorder_version first"):
        check_version(spark, place)
    shutil.move(folder / "_other", folder / "_zorder_version")
    shutil.move(folder / "_zorder_stats", folder / "_other")
    with pytest.raises(BuildError, match="its stats cannot be read"):
        check_version(spark, place)
    with pytest.raises(BuildError, match="its stats cannot be read"):
        check_version(spark, place, pa.table({"file_path": [], "file_size": []}))
    shutil.move(folder / "_other", folder / "_zorder_stats")
    next(folder.glob("part-*")).unlink()
    with pytest.raises(BuildError, match=r"1 files .* part-|1 files .*part-"):
        check_version(spark, place)
    shutil.rmtree(folder)
    with pytest.raises(BuildError, match="is gone, or its stats cannot be read"):
        check_version(spark, place)


def test_a_step_that_fails_beside_a_deletion_says_so(spark: SparkSession, table: TableName) -> None:
    place = location_of(spark, table)

    def fail() -> None:
        with beside_vacuum(spark, table, place):
            raise FileNotFoundError(place)

    with pytest.raises(FileNotFoundError):
        fail()
    stone = raise_tombstone(spark, place)
    with pytest.raises(BuildError, match="A vacuum that ran beside this build deleted"):
        fail()
    with pytest.raises(BuildError, match="is being deleted, or a run that began to delete it has ended"):
        check_version(spark, place)
    take_away(spark, stone)
    check_version(spark, place)


def test_a_version_that_was_deleted_as_it_was_swapped_in_gives_way_to_the_one_before(
    spark: SparkSession, table: TableName
) -> None:
    base = describe(spark, table)
    make(spark, table, 20)
    new = location_of(spark, table)
    check_served(spark, table, base, new)
    shutil.rmtree(urlsplit(new).path)
    with pytest.raises(BuildError, match="the version before is served again"):
        check_served(spark, table, base, new)
    assert spark.table(table.sql).count() == 10
    check_served(spark, table, base, new)  # now it is no longer the one that is served


def test_a_table_where_there_was_to_be_none_is_seen(spark: SparkSession, database: str, table: TableName) -> None:
    with pytest.raises(BuildError, match="exists, though dbt's list"):
        check_absent(spark, table)
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {previous_of(table).sql}")  # as a swap cut short leaves it
    with pytest.raises(BuildError, match="exists, though dbt's list"):
        check_absent(spark, table)
    view = TableName(database, unique("v"))
    check_absent(spark, view)
    spark.sql(f"CREATE VIEW {view.sql} AS SELECT 1 AS a")
    check_absent(spark, view)


def test_a_base_that_moved_is_seen(spark: SparkSession, table: TableName) -> None:
    base = describe(spark, table)
    check_base(spark, table, base)
    make(spark, table, 20)
    with pytest.raises(BuildError, match="Another run changed"):
        check_base(spark, table, base)
    with pytest.raises(BuildError, match="Another run changed"):
        check_base(spark, table, None)
