"""A table whose entry leads to a version that is gone, as after its metastore was restored from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.retention.tombstone import raise_tombstone
from dbt_zorder.tables.parquet.rewrite import optimize, request_from_marker


def restored(spark: SparkSession, table: TableName, tmp_path: Path, partition_by: tuple[str, ...] = ()) -> list[str]:
    """Build three versions, and let the table lead to the first, which was collected."""
    spec = LayoutSpec(by=["id"], files=1, partition_by=partition_by)
    request = BuildRequest(table, spec, location_root=str(tmp_path), keep_versions=9)
    frames = [spark.sql(f"SELECT id, id % 2 AS p FROM range({rows})") for rows in (10, 20, 30)]
    names = [build(spark, frame if partition_by else frame.drop("p"), request).version for frame in frames]
    folder = tmp_path / f"{table.identifier}__zorder" / names[0]
    shutil.rmtree(folder)
    spark.sql(f"ALTER TABLE {table.sql} SET LOCATION '{folder}'")
    return names


def test_nothing_is_vacuumed_and_the_message_says_what_repairs(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    _, second, third = restored(spark, table, tmp_path)
    done = vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False)
    assert done.deleted == []
    assert f"Whole versions there: {third}, {second}" in str(done)
    assert f"zorder_rollback --args '{{model: {table}, version: {third}}}'" in str(done)
    folder = tmp_path / f"{table.identifier}__zorder"
    assert sorted(path.name for path in folder.iterdir()) == [second, third]
    assert drop_table(spark, table)
    assert sorted(path.name for path in folder.iterdir()) == [second, third]


def test_a_rollback_offers_and_serves_what_is_left(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    first, second, third = restored(spark, table, tmp_path)
    next((tmp_path / f"{table.identifier}__zorder" / second).glob("*.parquet")).unlink()
    with pytest.raises(ZorderError, match=f"which is gone. Whole versions there: {third}. Serve"):
        rollback(spark, table)
    with pytest.raises(ZorderError, match="Whole versions there"):
        rollback(spark, table, second)
    assert rollback(spark, table, third) == (first, third)
    assert spark.table(table.sql).count() == 30
    assert vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False).deleted == [second]


def test_a_version_that_lacks_files_is_no_reason_to_delete_others(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    request = BuildRequest(table, LayoutSpec(by=["id"], files=2), location_root=str(tmp_path), keep_versions=9)
    first, second = (build(spark, spark.range(rows).toDF("id"), request).version for rows in (10, 20))
    next((tmp_path / f"{table.identifier}__zorder" / second).glob("*.parquet")).unlink()
    done = vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False)
    assert done.deleted == []
    assert "which lacks 1 of its 2 files" in str(done)
    assert rollback(spark, table) == (second, first)


def test_where_nothing_is_left_a_run_repairs(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    restored(spark, table, tmp_path)
    for folder in (tmp_path / f"{table.identifier}__zorder").iterdir():
        shutil.rmtree(folder)
    with pytest.raises(ZorderError, match="No whole version is left there"):
        rollback(spark, table, "v1")
    build(spark, spark.range(5).toDF("id"), BuildRequest(table, LayoutSpec(by=["id"], files=1)))
    assert spark.table(table.sql).count() == 5


@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_whatever_meets_a_version_that_is_gone_names_the_whole_ones(
    spark: SparkSession, table: TableName, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    _, second, third = restored(spark, table, tmp_path, partition_by)
    request = BuildRequest(table, LayoutSpec(by=["id"], files=1, partition_by=partition_by))
    for act in (
        lambda: begin(spark, table),
        lambda: optimize(spark, request, dry_run=False),
        lambda: request_from_marker(spark, table),
        lambda: verify_table(spark, table),
        lambda: rebuild_stats(spark, table, ["id"]),
    ):
        with pytest.raises(BuildError, match=f"which is gone. Whole versions there: {third}, {second}. Serve one of"):
            act()


def test_a_batch_goes_into_no_version_whose_deletion_was_cut_short(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    request = BuildRequest(table, LayoutSpec(by=["id"], files=1), location_root=str(tmp_path), keep_versions=9)
    first, second = (build(spark, spark.range(rows).toDF("id"), request).version for rows in (10, 20))
    folder = tmp_path / f"{table.identifier}__zorder" / second
    raise_tombstone(spark, str(folder))
    next(folder.glob("*.parquet")).unlink()
    with pytest.raises(BuildError, match=f"whose deletion has begun. Whole versions there: {first}."):
        begin(spark, table)
