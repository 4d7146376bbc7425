from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.errors import BuildError, ColumnError, ConfigError, SchemaChangeError, ZorderError
from dbt_zorder.request import IN_MEMORY, BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet import incremental as module
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.rewrite import rewrite
from dbt_zorder.tables.report import IncrementReport
from dbt_zorder.tables.version import read_marker
from tests.support import checksum, settings, unique
from tests.unit.tables.parquet.batches import folder, made, request, rows, same


def go(spark: SparkSession, query: str, wanted: BuildRequest, **batch: Any) -> IncrementReport:
    return increment(spark, spark.sql(query), wanted, Batch(**batch))


def test_a_batch_is_appended(spark: SparkSession, table: TableName) -> None:
    wanted = request(table)
    first = build(spark, spark.sql(rows(0, 100)), wanted)
    second = go(spark, rows(100, 120), wanted)
    assert second.appended is not None
    assert second.version == first.version
    assert second.table is not None
    assert second.table.rows == 120


@pytest.mark.parametrize("in_memory", [IN_MEMORY, 0])
def test_a_backfill_behind_a_first_run_of_a_few_rows_makes_no_more_files_than_were_asked_for(
    spark: SparkSession, table: TableName, in_memory: int
) -> None:
    wanted = replace(request(table), in_memory=in_memory)
    build(spark, spark.sql(rows(0, 40)), wanted)
    report = go(spark, rows(40, 20_000), wanted, may_rewrite=False)
    assert report.appended is not None
    assert (report.appended.rows, report.appended.files) == (19_960, 4)
    after = go(spark, rows(20_000, 20_100), wanted, may_rewrite=False)
    assert after.appended is not None
    assert after.appended.files == 1
    assert same(spark.table(table.sql), spark.sql(rows(0, 20_100)))


def test_a_table_that_was_built_empty_is_built_anew_by_the_first_rows(spark: SparkSession, table: TableName) -> None:
    wanted = request(table)
    build(spark, spark.sql(rows(0, 0)), wanted)
    report = go(spark, rows(0, 5000), wanted, may_rewrite=False)
    assert report.built is not None
    assert report.built.summary.files == 4
    assert same(spark.table(table.sql), spark.sql(rows(0, 5000)))


def test_where_nothing_can_be_renamed_a_version_is_built(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100))
    monkeypatch.setattr(module, "has_client", lambda _: False)
    assert go(spark, rows(100, 120), wanted).appended is None
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))


def test_overwriting_a_table_that_dbt_spark_made_keeps_its_other_partitions(
    spark: SparkSession, table: TableName
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 100, 'nullif(id % 3, 0)')}")
    batch = f"SELECT * FROM ({rows(100, 130, 'nullif(id % 3, 0)')}) WHERE p IS NULL"
    go(spark, batch, request(table, partition_by=("p",)), overwrite=True)
    old = f"SELECT * FROM ({rows(0, 100, 'nullif(id % 3, 0)')}) WHERE p IS NOT NULL"
    assert same(spark.table(table.sql), spark.sql(f"{old} UNION ALL {batch}"))
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, list(info.partition_columns)) == ("EXTERNAL", ["p"])


def test_a_batch_does_not_replace_partitions_that_it_may_not_hold_whole(spark: SparkSession, table: TableName) -> None:
    build(spark, spark.sql(rows(0, 100)), request(table, partition_by=("p",)))
    for by in (("a",), ("p", "a")):
        with pytest.raises(ConfigError, match=r"is partitioned by p, and its model by (p, )?a now.*--full-refresh"):
            go(spark, rows(0, 5), request(table, by=("id",), partition_by=by), overwrite=True)
    assert same(spark.table(table.sql), spark.sql(rows(0, 100)))
    go(spark, rows(100, 120), request(table, by=("id",), partition_by=("a",)))
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))


def test_what_is_wrong_is_found_first(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    before = checksum(spark.table(table.sql))
    with pytest.raises(ColumnError, match="no column 'b'"):
        go(spark, rows(0, 9), request(table, by=("b",)))
    assert checksum(spark.table(table.sql)) == before
    other = TableName(table.schema, unique("csv"))
    spark.sql(f"CREATE TABLE {other.sql} USING csv AS {rows(0, 3)}")
    with pytest.raises(ZorderError, match="is in csv, and the model's file_format is 'parquet', the default: run"):
        go(spark, rows(0, 9), BuildRequest(other, wanted.spec))
    by, parted = replace(wanted.spec, by=("extra",)), replace(wanted.spec, partition_by=("extra",))
    named = (replace(wanted, spec=by), replace(wanted, spec=parted))
    for more in (replace(wanted, stats_columns=["extra"]), replace(wanted, bloom=["extra"]), *named):
        with pytest.raises(ColumnError, match=r"new columns \(extra\), which on_schema_change 'ignore' leaves out"):
            go(spark, f"SELECT *, 1 AS extra FROM ({rows(0, 9)})", more)


def test_weights_of_other_columns_than_the_table_has_do_not_stop_a_batch(spark: SparkSession, table: TableName) -> None:
    made(spark, table, rows(0, 100), by=("a",))
    wanted = request(table, by=("a", "s", "id"))
    wanted = replace(wanted, spec=replace(wanted.spec, weights=(1, 2, 1)))
    assert go(spark, rows(100, 120), wanted).appended is not None
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))


def test_columns_may_have_any_name_where_partitions_are_replaced_by_a_new_version(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "SELECT id, a, s AS P0, a AS kept, s AS replaced, p FROM ({})"
    wanted = request(table, by=("a",), partition_by=("p",))
    build(spark, spark.sql(named.format(rows(0, 90))), wanted)
    monkeypatch.setattr(module, "has_client", lambda _: False)
    batch = named.format(rows(90, 120)) + " WHERE p = 1"
    assert go(spark, batch, wanted, overwrite=True).appended is None
    old = named.format(rows(0, 90)) + " WHERE p <> 1"
    assert same(spark.table(table.sql), spark.sql(f"{old} UNION ALL {batch}"))


def test_a_column_twice_in_a_batch_is_named(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    with pytest.raises(ColumnError, match="produces the column 'A' twice"):
        go(spark, f"SELECT *, 1 AS A FROM ({rows(100, 120)})", wanted)


def test_a_batch_that_replaces_the_whole_table_heeds_on_schema_change(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    less, more = f"SELECT id, a, s FROM ({rows(0, 20)})", f"SELECT *, 1 AS extra FROM ({rows(0, 30)})"
    for query, mode in ((less, "fail"), (more, "fail"), (less, "ignore")):
        with pytest.raises(SchemaChangeError, match=r"missing: p|new: extra"):
            go(spark, query, wanted, overwrite=True, on_schema_change=mode)
        assert same(spark.table(table.sql), spark.sql(rows(0, 100)))
    go(spark, more, wanted, overwrite=True)
    assert same(spark.table(table.sql), spark.sql(rows(0, 30)))
    go(spark, f"{more} WHERE id < 5", wanted, overwrite=True, on_schema_change="append_new_columns")
    go(spark, f"{less} WHERE id < 9", wanted, overwrite=True, on_schema_change="append_new_columns")
    assert same(spark.table(table.sql), spark.sql(f"SELECT *, NULL AS p, NULL AS extra FROM ({less}) WHERE id < 9"))
    go(spark, less, wanted, overwrite=True, on_schema_change="sync_all_columns")
    assert same(spark.table(table.sql), spark.sql(less))


def test_a_table_whose_partitions_the_catalog_was_to_know_keeps_its_rows(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100), partition_by=("p",))
    place = folder(spark, table)
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):
        spark.sql(f"DROP TABLE {table.sql}")
        columns = "id BIGINT, a INT, s STRING, p BIGINT"
        spark.sql(f"CREATE TABLE {table.sql} ({columns}) USING parquet PARTITIONED BY (p) LOCATION '{place}'")
        assert spark.table(table.sql).count() == 0, "as an earlier build has left it"
        begin(spark, table)
        go(spark, rows(100, 120).replace("id % 3", "id % 2"), wanted, overwrite=True)
        rewrite(spark, wanted)
    kept = f"SELECT * FROM ({rows(0, 100)}) WHERE p = 2"
    new = rows(100, 120).replace("id % 3", "id % 2")
    assert same(spark.table(table.sql), spark.sql(f"{kept} UNION ALL {new}"))


def test_rows_added_to_a_table_while_it_is_taken_over_are_not_lost(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 100)}")
    before = begin(spark, table)
    real = build_module.write_data

    def meanwhile(*args: Any) -> None:
        real(*args)
        spark.sql(f"INSERT INTO {table.sql} {rows(200, 210)}")

    monkeypatch.setattr(build_module, "write_data", meanwhile)
    with pytest.raises(BuildError, match=r"Another run added \d+ and removed 0 files"):
        increment(spark, spark.sql(rows(100, 120)), request(table), Batch(), before)
    monkeypatch.undo()
    assert spark.table(table.sql).count() == 110
    increment(spark, spark.sql(rows(100, 120)), request(table), Batch(), begin(spark, table))
    assert spark.table(table.sql).count() == 130


def test_a_batch_that_replaces_partitions_is_asked_once(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 20, 'cast(id AS int)')}")
    anywhere = f.udf(lambda: random.randrange(20), "int").asNondeterministic()
    batch = spark.sql(rows(20, 21)).withColumn("p", anywhere())
    increment(spark, batch, request(table, files=1, partition_by=("p",)), Batch(overwrite=True))
    found = spark.table(table.sql)
    assert sorted(row.p for row in found.select("p").collect()) == list(range(20)), "one row a partition"
    assert found.where("id = 20").count() == 1


def test_a_renewed_marker_says_of_the_columns_what_the_table_does(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100), column_comments={"a": "ours"})
    other = TableName(table.schema, unique("other"))
    spark.sql(
        f"CREATE TABLE {other.sql} (id BIGINT, a INT COMMENT 'theirs', s STRING, p BIGINT, more INT) USING parquet"
    )
    spark.sql(f"INSERT INTO {other.sql} SELECT *, 1 FROM ({rows(100, 110)})")
    assert go(spark, f"SELECT * FROM {other.sql}", wanted, on_schema_change="append_new_columns").appended is not None
    marker = read_marker(spark, str(folder(spark, table)))
    assert marker is not None
    assert StructType.fromJson(json.loads(marker.schema)) == spark.table(table.sql).schema
    assert StructType.fromJson(json.loads(marker.schema))["a"].metadata == {"comment": "ours"}


def test_columns_that_the_table_has_no_stats_of_are_a_warning(
    spark: SparkSession, table: TableName, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = made(spark, table, rows(0, 100), by=("a",))
    go(spark, rows(100, 110), wanted)
    assert "zorder_stats_columns" not in caplog.text
    go(spark, rows(110, 120), replace(wanted, stats_columns=("ID", "s")))
    assert f"zorder_stats_columns of {table} names s, which the table has no stats of" in caplog.text
