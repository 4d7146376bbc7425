from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.api import scan
from dbt_zorder.errors import BuildError, ColumnError, ConfigError, ZorderError
from dbt_zorder.spark.catalog import TableInfo, TableName, describe, properties
from dbt_zorder.tables.compact import compact
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.version import version_of
from tests.support import checksum, settings

ROWS = "SELECT /*+ repartition(40) */ id, pmod(hash(id), 100) k, concat('n', id) s, id % 3 p FROM range(4000)"
BY_CATALOG = "spark.sql.hive.manageFilesourcePartitions"


def info_of(spark: SparkSession, table: TableName) -> TableInfo:
    info = describe(spark, table)
    assert info is not None
    return info


def folder(info: TableInfo) -> Path:
    return Path(unquote(urlsplit(info.location).path))


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_many_files_become_few_and_the_former_ones_stay(
    spark: SparkSession, table: TableName, tmp_path: Path, external: bool, partitioned: bool
) -> None:
    place = f"LOCATION '{tmp_path}/t'" if external else ""
    parts = "PARTITIONED BY (p)" if partitioned else ""
    spark.sql(
        f"CREATE TABLE {table.sql} USING parquet {parts} {place} COMMENT 'kept' TBLPROPERTIES (own = '1') AS {ROWS}"
    )
    before, rows = info_of(spark, table), checksum(spark.table(table.sql))
    files = sorted(folder(before).rglob("*.parquet"))
    reader = spark.table(table.sql)
    planned = compact(spark, table, ["k", "id"], dry_run=True)
    assert planned.files == len(files) > 30
    assert "Nothing was changed" in str(planned)
    assert info_of(spark, table) == before

    done = compact(spark, table, ["k", "id"], dry_run=False)
    after = info_of(spark, table)
    assert done.files_after == (3 if partitioned else 1)
    assert version_of(after.location) == done.version
    assert f"Its former files stay in {before.location}." in str(done)
    assert checksum(spark.table(table.sql)) == rows
    assert sorted(folder(before).rglob("*.parquet")) == files
    assert checksum(reader) == rows  # a query that was planned before still reads the former files
    assert (after.comment, properties(spark, table)["own"]) == ("kept", "1")
    assert list(after.partition_columns) == (["p"] if partitioned else [])
    assert scan(spark, str(table), "id = 7").count() == 1

    again = compact(spark, table, ["k", "id"], dry_run=False)
    assert not again.is_due
    assert "nothing to do" in str(again)
    assert info_of(spark, table) == after


def test_files_have_the_size_that_is_asked_for(spark: SparkSession, table: TableName) -> None:
    rows = "SELECT /*+ repartition(20) */ id, hash(id) k, hash(id, 1) v FROM range(200000)"
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows}")
    done = compact(spark, table, ["k", "id"], "300kB", dry_run=False)
    assert 4 <= done.files_after <= 12
    assert done.touched["k"] == pytest.approx(20, abs=0.5)
    assert done.touched_after["k"] < 0.7 * done.files_after
    assert not compact(spark, table, ["k", "id"], "300kB", dry_run=False).is_due


def test_new_files_or_other_columns_are_a_reason_to_rewrite_again(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    compact(spark, table, ["k"], dry_run=False)
    spark.sql(f"INSERT INTO {table.sql} {ROWS}")
    done = compact(spark, table, ["k"], dry_run=False)
    assert (done.files, done.files_after, done.left) == (41, 1, "")
    assert spark.table(table.sql).count() == 8000
    assert compact(spark, table, ["id"], dry_run=True).is_due
    assert list(compact(spark, table, ["id"], dry_run=False).touched_after) == ["id"]
    assert not compact(spark, table, ["id"], dry_run=False).is_due


def test_rows_that_come_meanwhile_are_not_lost(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    before, write = info_of(spark, table), build_module.write_data

    def meanwhile(*args: Any) -> None:
        write(*args)
        spark.sql(f"INSERT INTO {table.sql} VALUES (-1L, 1, 'new', 0L)")

    monkeypatch.setattr(build_module, "write_data", meanwhile)
    with pytest.raises(BuildError, match="Another writer changed the files"):
        compact(spark, table, ["k"], dry_run=False)
    assert info_of(spark, table).location == before.location
    assert spark.table(table.sql).count() == 4001


def test_partitions_of_the_catalog_must_be_those_of_the_folder(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    with settings(spark, {BY_CATALOG: "true"}):
        spark.sql(f"CREATE TABLE {table.sql} USING parquet PARTITIONED BY (p) AS {ROWS}")
        assert info_of(spark, table).partition_provider == "Catalog"
        spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION (p = 9) LOCATION '{tmp_path}/nine'")
        with pytest.raises(ConfigError, match="the catalog registers other partitions"):
            compact(spark, table, ["k"], dry_run=True)
        spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION (p = 9)")
        spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION (p = 1)")
        home = folder(info_of(spark, table))
        (home / "p=1").mkdir(exist_ok=True)
        spark.sql("SELECT 1L id, 1 k, 's' s").write.mode("overwrite").parquet(f"{home}/p=1")
        with pytest.raises(ConfigError, match=r"the catalog registers other partitions.*p=1"):
            compact(spark, table, ["k"], dry_run=True)
        spark.sql(f"MSCK REPAIR TABLE {table.sql}")
        rows = checksum(spark.table(table.sql))
    with settings(spark, {BY_CATALOG: "false"}):
        assert compact(spark, table, ["k"], dry_run=False).files_after == 3
        assert checksum(spark.table(table.sql)) == rows


def test_what_cannot_be_rewritten_is_said_before_anything_is_written(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ZorderError, match="does not exist"):
        compact(spark, table, ["a"], dry_run=False)
    spark.sql(f"CREATE TABLE {table.sql} (a INT DEFAULT 3, b INT) USING parquet")
    with pytest.raises(ConfigError, match=r"the column 'a' of .* has a default value"):
        compact(spark, table, ["b"], dry_run=True)
    with pytest.raises(ColumnError, match="no column 'c'"):
        compact(spark, table, ["c"], dry_run=True)
    other = TableName(table.schema, f"{table.identifier}_csv")
    spark.sql(f"CREATE TABLE {other.sql} USING csv AS SELECT 1 a")
    with pytest.raises(ZorderError, match="of the format csv, and zorder_by is for tables in Parquet"):
        compact(spark, other, ["a"], dry_run=False)
    view = TableName(table.schema, f"{table.identifier}_view")
    spark.sql(f"CREATE VIEW {view.sql} AS SELECT 1 a")
    with pytest.raises(ZorderError, match="a view, which has no files"):
        compact(spark, view, ["a"], dry_run=False)


def test_buckets_of_another_writer_stay(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet CLUSTERED BY (id) INTO 4 BUCKETS AS {ROWS}")
    rows = checksum(spark.table(table.sql))
    assert compact(spark, table, ["k"], dry_run=False).files_after == 4
    info = info_of(spark, table)
    assert (list(info.bucket_columns), info.bucket_count) == (["id"], 4)
    assert checksum(spark.table(table.sql)) == rows
