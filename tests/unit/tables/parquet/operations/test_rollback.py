from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, properties, schema_location
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.deletions import collect_old
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.version import version_of
from tests.support import checksum, unique


def make(
    spark: SparkSession, table: TableName, query: str, partition_by: tuple[str, ...] = (), **more: Any
) -> tuple[str, tuple[int, int]]:
    spec = LayoutSpec(by=["id"], files=2, partition_by=partition_by)
    version = build(spark, spark.sql(query), BuildRequest(table, spec, **more)).version
    return version, checksum(spark.table(table.sql))


def test_the_version_before_is_served_again_with_its_stats(spark: SparkSession, table: TableName) -> None:
    first, rows = make(spark, table, "SELECT id FROM range(50)")
    second, later = make(spark, table, "SELECT id FROM range(60)")
    assert rollback(spark, table) == (second, first)
    assert checksum(spark.table(table.sql)) == rows
    assert spark.table(stats_table(table).sql).selectExpr("sum(row_count)").first() == (50,)
    assert rollback(spark, table, second) == (first, second)
    assert checksum(spark.table(table.sql)) == later


def test_a_build_after_a_rollback_stands_upon_what_is_served(spark: SparkSession, table: TableName) -> None:
    first, _ = make(spark, table, "SELECT id FROM range(50)")
    second, _ = make(spark, table, "SELECT id FROM range(60)")
    rollback(spark, table)
    third, _ = make(spark, table, "SELECT id FROM range(70)")
    assert rollback(spark, table) == (third, first)
    root = f"{schema_location(spark, table.schema)}/{table.identifier}__zorder"
    assert collect_old(spark, root, first, 0, 24) == [], "both were replaced just now"
    assert sorted(collect_old(spark, root, first, 0, 0)) == sorted([second, third])


def test_columns_and_partitions_are_those_of_the_version(spark: SparkSession, table: TableName) -> None:
    one = "SELECT id, cast(id % 3 AS smallint) AS p, 'x' AS s FROM range(50)"
    first, rows = make(spark, table, one, ("p",), column_comments={"s": "a comment"})
    schema = spark.table(table.sql).schema
    make(spark, table, "SELECT id, 1.5 AS other FROM range(60)", comment="kept", properties={"team": "me"})
    assert rollback(spark, table)[1] == first
    assert spark.table(table.sql).schema == schema
    assert checksum(spark.table(table.sql)) == rows
    info = describe(spark, table)
    assert info is not None
    assert (info.partition_columns, info.comment) == (["p"], "kept")
    assert properties(spark, table)["team"] == "me"


def test_what_cannot_be_served_is_one_sentence(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ZorderError, match="does not exist; only a table"):
        rollback(spark, table)
    first, _ = make(spark, table, "SELECT id FROM range(50)")
    with pytest.raises(ZorderError, match="no version before the one that is served: no other one is kept"):
        rollback(spark, table)
    second, _ = make(spark, table, "SELECT id FROM range(60)")
    with pytest.raises(ZorderError, match=f"no version v1: there are {first}"):
        rollback(spark, table, "v1")
    with pytest.raises(ZorderError, match=f"Did you mean '{first}'"):
        rollback(spark, table, first[:-1])
    with pytest.raises(ZorderError, match="already"):
        rollback(spark, table, second)
    other = TableName(table.schema, unique("other"))
    spark.sql(f"CREATE TABLE {other.sql} USING parquet AS SELECT 1 AS a")
    with pytest.raises(ZorderError, match="is not served from a version"):
        rollback(spark, other)


def test_a_version_that_is_not_whole_is_not_served(spark: SparkSession, table: TableName) -> None:
    first, _ = make(spark, table, "SELECT id FROM range(50)")
    second, rows = make(spark, table, "SELECT id FROM range(60)")
    folder = Path(schema_location(spark, table.schema).removeprefix("file:")) / f"{table.identifier}__zorder" / first
    next(folder.glob("*.parquet")).unlink()
    with pytest.raises(BuildError, match="1 files of the version went missing"):
        rollback(spark, table)
    info = describe(spark, table)
    assert info is not None
    assert version_of(info.location) == second
    assert checksum(spark.table(table.sql)) == rows


def test_a_property_that_spark_hides_is_there_again(spark: SparkSession, table: TableName) -> None:
    owned = {"source_url": "https://there", "docs": "my_url"}
    make(spark, table, "SELECT id FROM range(50)")
    make(spark, table, "SELECT id, 1.5 AS other FROM range(60)", properties=owned)
    rollback(spark, table)
    assert own_properties(spark, table) == owned


def test_a_newer_version_in_a_later_root_is_served_again(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    first, _ = make(spark, table, "SELECT id FROM range(50)", location_root=str(tmp_path / "one"))
    second, rows = make(spark, table, "SELECT id FROM range(60)", location_root=str(tmp_path / "two"))
    assert rollback(spark, table) == (second, first)
    assert rollback(spark, table, second) == (first, second)
    assert checksum(spark.table(table.sql)) == rows
    rollback(spark, table)
    third, _ = make(spark, table, "SELECT id FROM range(70)", location_root=str(tmp_path / "three"))
    assert rollback(spark, table, second) == (third, second)
    done = vacuum(spark, table, 0, 0, dry_run=False)
    assert sorted(done.deleted) == [first, third]
