"""Pruned reads of partitioned tables, whose folders Spark leaves out by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, scan
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import settings
from tests.unit.pruning.helpers import files_read


def test_a_moment_in_the_name_of_a_folder_is_of_the_readers_zone(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.moments"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    query = "SELECT id, timestamp'2024-03-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS hour FROM range(6)"
    with settings(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        spark.sql(f"CREATE TABLE {name} USING parquet PARTITIONED BY (hour) AS {query}")
        rebuild_stats(spark, TableName(*name.split(".")), ["id", "hour"])
    for zone in ("Europe/Berlin", "UTC", "America/Los_Angeles"):
        with settings(spark, {"spark.sql.session.timeZone": zone}):
            spark.sql(f"REFRESH TABLE {name}")
            for predicate in ("hour = timestamp'2024-03-01 03:00:00'", "hour < '2024-03-01 02:00:00'"):
                pruned, whole = scan(spark, name, predicate), spark.table(name).where(predicate)
                assert sorted(pruned.collect()) == sorted(whole.collect()) != []
            assert explain(spark, name, "id = 3").files_read == 1


def test_a_partition_has_the_value_that_the_catalog_gives_it(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """Path and size of the files stay when another value is given to their folder."""
    name = "pruning_unit.given"
    query = "SELECT /*+ repartition_by_range(3, id) */ id, CAST(id % 3 AS INT) AS part FROM range(300)"
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} USING parquet PARTITIONED BY (part) LOCATION '{tmp_path}' AS {query}")
        rebuild_stats(spark, TableName(*name.split(".")), ["id", "part"])
        for part, folder in ((0, 1), (1, 0)):
            spark.sql(f"ALTER TABLE {name} PARTITION (part={part}) SET LOCATION '{tmp_path}/part={folder}'")
        spark.sql(f"ALTER TABLE {name} ADD PARTITION (part=9) LOCATION '{tmp_path}/part=2'")
        for predicate in (
            "part = 1",
            "part = 9",
            "part = 0 and id < 5",
            "part = 9 or id = 4",
            "part is null",
            "part > id",
        ):
            pruned, whole = scan(spark, name, predicate), spark.table(name).where(predicate)
            assert sorted(pruned.collect()) == sorted(whole.collect())
        assert files_read(scan(spark, name, "part = 0 and id < 5")) == 1


@pytest.mark.parametrize("managed", ["true", "false"])
def test_the_folders_that_spark_leaves_out_itself_are_not_counted_as_read(
    spark: SparkSession, table: str, managed: str
) -> None:
    name = "pruning_unit.folders"
    query = "SELECT /*+ repartition_by_range(4, id) */ id, CAST(id % 3 AS INT) AS part FROM range(300)"
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": managed}):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} USING parquet PARTITIONED BY (part) AS {query}")
        rebuild_stats(spark, TableName(*name.split(".")), ["id", "part"])
        for predicate, files in (
            ("part = 1", 4),
            ("part = 1 and id < 5", 1),
            ("id < 5", 3),
            ("part = 1 or id < 5", 12),
        ):
            explained = explain(spark, name, predicate)
            assert (explained.files_read, explained.files_total) == (files, 12)
            assert files_read(scan(spark, name, predicate)) == files
        told = explain(spark, name, "part = 1 and id < 5")
        assert (told.rows_total, told.rows_read) == (300, 25)
        alone = explain(spark, name, "part = 1")
        assert "partition column" in alone.reason
        assert "All files are read" not in str(alone)
