"""All that is done to a table in its life, on a real object store or metastore: each step by count and checksum."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.files import list_folders
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.snapshot import SnapshotColumns, take_snapshot
from dbt_zorder.tables.version import root_of
from tests.support import checksum, unique
from tests.unit.tables.parquet.batches import assert_sound, made, rows


def assert_holds(spark: SparkSession, table: TableName, *queries: str) -> None:
    """The table has the rows of these queries, its stats agree with its files, and pruning loses none."""
    spark.sql(f"REFRESH TABLE {table.sql}")
    wanted = spark.sql(" UNION ALL ".join(queries))
    assert checksum(spark.table(table.sql).select(*sorted(wanted.columns))) == checksum(
        wanted.select(*sorted(wanted.columns))
    )
    assert list(verify_table(spark, table).findings) == []
    assert_sound(spark, table)


def batch(spark: SparkSession, wanted: BuildRequest, query: str, *, overwrite: bool = False) -> None:
    begin(spark, wanted.table)
    increment(spark, spark.sql(query), wanted, Batch(overwrite=overwrite, may_rewrite=False))


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["plain", "parted"])
def test_the_life_of_a_table(spark: SparkSession, table: TableName, partition_by: tuple[str, ...]) -> None:
    wanted = made(spark, table, rows(0, 300), partition_by=partition_by, keep_versions=5)
    assert_holds(spark, table, rows(0, 300))
    batch(spark, wanted, rows(300, 400))
    batch(spark, wanted, rows(400, 420))
    assert_holds(spark, table, rows(0, 420))
    batch(spark, wanted, rows(420, 420))
    assert_holds(spark, table, rows(0, 420))
    if partition_by:
        batch(spark, wanted, rows(500, 560, "CAST(1 AS BIGINT)"), overwrite=True)
        kept = f"SELECT * FROM ({rows(0, 420)}) WHERE p <> 1"
        assert_holds(spark, table, kept, rows(500, 560, "CAST(1 AS BIGINT)"))
    else:
        batch(spark, wanted, rows(500, 560), overwrite=True)
        assert_holds(spark, table, rows(500, 560))
    made(spark, table, rows(0, 50), partition_by=partition_by, keep_versions=5)
    assert_holds(spark, table, rows(0, 50))
    served, target = rollback(spark, table)
    assert served != target
    assert_holds(spark, table, *([kept, rows(500, 560, "CAST(1 AS BIGINT)")] if partition_by else [rows(500, 560)]))
    rollback(spark, table, served)
    assert_holds(spark, table, rows(0, 50))
    found = pruning.query(spark, f"SELECT id FROM {table.sql} WHERE id < 10")
    assert sorted(row.id for row in found.collect()) == list(range(10))
    gone = vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    root = root_of(spark, table, None)
    assert gone.deleted
    assert list_folders(spark, root) == [served]
    assert_holds(spark, table, rows(0, 50))
    assert drop_table(spark, table)
    assert describe(spark, table) is None
    assert list_folders(spark, root) == []


def test_a_snapshot(spark: SparkSession, table: TableName) -> None:
    names = SnapshotColumns("scd", "until")
    wanted = BuildRequest(table, LayoutSpec(by=["id"], files=2))
    columns = "id, 'a' AS v, CAST(NULL AS DATE) AS until, concat(id, 'a') AS scd"
    build(spark, spark.sql(f"SELECT {columns} FROM range(50)"), wanted)
    changed = unique("changes")
    spark.sql(
        "SELECT 'update' AS dbt_change_type, id, 'b' AS v, id AS dbt_unique_key, DATE'2024-05-01' AS until,"
        " concat(id, 'a') AS scd FROM range(5) UNION ALL"
        " SELECT 'insert', id, 'b', id, NULL, concat(id, 'b') FROM range(5)"
    ).createOrReplaceTempView(changed)
    for _ in range(2):  # to take it again changes nothing
        take_snapshot(spark, f"SELECT * FROM {changed}", wanted, names)
        spark.sql(f"REFRESH TABLE {table.sql}")
        found = spark.table(table.sql).groupBy("v", "until").count().collect()
        assert {(row.v, str(row.until), row["count"]) for row in found} == {
            ("a", "None", 45),
            ("a", "2024-05-01", 5),
            ("b", "None", 5),
        }
    assert list(verify_table(spark, table).findings) == []
