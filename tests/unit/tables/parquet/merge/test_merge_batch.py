"""Merges write the files that have a changed row, share the others with the version before, and report both."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.errors import BuildError, ColumnError, ConfigError, SchemaChangeError, ZorderError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.merge import row_changes
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.report import IncrementReport, MergeReport
from tests.support import checksum, versions
from tests.unit.tables.parquet.batches import folder, request, rows, same

UPSERT = Merge(["id"])
NEW_A = "SELECT id, -1L AS a, s, p FROM ({})"


def made(spark: SparkSession, table: TableName, query: str = rows(0, 4000), **more: Any) -> BuildRequest:
    """Build a table in eight files by its key, so that a few keys lie in few files."""
    wanted = request(table, files=8, **{"by": ("id",), **more})
    build(spark, spark.sql(query), wanted)
    return wanted


def go(
    spark: SparkSession, query: str, wanted: BuildRequest, merge: Merge = UPSERT, mode: str = "ignore"
) -> IncrementReport:
    before = begin(spark, wanted.table)
    batch = Batch(on_schema_change=mode, may_rewrite=False)
    report = merge_batch(spark, spark.sql(query), wanted, batch, merge, before)
    spark.sql(f"REFRESH TABLE {wanted.table.sql}")
    assert pruning.sound(spark, wanted.table.sql, ["a < 20 AND id > 100", "id >= 400 OR a IS NULL"]) == []
    return report


def inodes(spark: SparkSession, table: TableName) -> set[int]:
    return {os.stat(path).st_ino for path in Path(folder(spark, table)).rglob("part-*.parquet")}


def changed(first: int, end: int) -> str:
    """Return rows with another ``a``, as a source delivers them that has changed."""
    return NEW_A.format(rows(first, end))


def test_a_merge_writes_the_files_with_a_changed_row_and_shares_the_others(
    spark: SparkSession, table: TableName
) -> None:
    wanted = made(spark, table)
    before, layout = inodes(spark, table), read_tree(spark, str(folder(spark, table)), spark.table(table.sql).schema)
    report = go(spark, f"{changed(100, 110)} UNION ALL {rows(4000, 4003)} UNION ALL {rows(110, 115)}", wanted)
    assert report.merged is not None
    assert (report.merged.inserted, report.merged.updated, report.merged.unchanged) == (3, 10, 5)
    assert 1 <= report.merged.rewritten <= 2
    assert report.merged.rewritten + report.merged.shared == 8
    assert len(before & inodes(spark, table)) == report.merged.shared
    assert same(
        spark.table(table.sql),
        spark.sql(f"{changed(100, 110)} UNION ALL {rows(0, 100)} UNION ALL {rows(110, 4003)}"),
    )
    assert verify_table(spark, table, None).findings == []
    after = read_tree(spark, str(folder(spark, table)), spark.table(table.sql).schema)
    assert layout is not None
    assert after is not None
    assert after.built == layout.built


def test_rows_that_come_once_more_write_nothing(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    version = folder(spark, table)
    report = go(spark, rows(50, 900), wanted)
    assert report.merged == MergeReport(0, 0, 850, 0)
    assert (folder(spark, table), len(versions(spark, table))) == (version, 1)


def test_merges_follow_one_another_and_each_can_be_undone(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    sums = [checksum(spark.table(table.sql))]
    for first in (10, 2000, 3990):
        go(spark, changed(first, first + 20), wanted)
        sums.append(checksum(spark.table(table.sql)))
    for expected in sums[-2::-1]:
        rollback(spark, table)
        spark.catalog.refreshTable(table.sql)
        assert checksum(spark.table(table.sql)) == expected


def test_a_vacuum_counts_shared_bytes_once_and_leaves_the_files_of_the_version_that_is_served(
    spark: SparkSession, table: TableName
) -> None:
    wanted = made(spark, table)
    go(spark, changed(10, 20), wanted)
    expected = checksum(spark.table(table.sql))
    found = vacuum(spark, table, keep=0, grace_hours=0)
    root = folder(spark, table).parent
    on_disk = {os.stat(path).st_ino: os.stat(path).st_size for path in root.rglob("*") if path.is_file()}
    assert sum(size for _, size in found.versions) == sum(on_disk.values())
    new, old = (next(size for one, size in found.versions if one.delete is gone) for gone in (False, True))
    assert 0 < old < new
    vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    assert len(versions(spark, table)) == 1
    spark.catalog.refreshTable(table.sql)
    assert checksum(spark.table(table.sql)) == expected
    assert verify_table(spark, table, None).findings == []


def test_a_disk_without_links_gets_copies(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table)

    def refuse(*_: str) -> None:
        raise OSError(errno.EPERM, "no links here")

    before = inodes(spark, table)
    monkeypatch.setattr(os, "link", refuse)
    report = go(spark, changed(10, 20), wanted)
    assert report.merged is not None
    assert report.merged.shared >= 6
    assert not before & inodes(spark, table)
    assert same(
        spark.table(table.sql), spark.sql(f"{rows(0, 10)} UNION ALL {changed(10, 20)} UNION ALL {rows(20, 4000)}")
    )


def test_where_versions_share_nothing_all_rows_are_written(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table)
    monkeypatch.setattr(row_changes, "can_share", lambda *_: False)
    report = go(spark, changed(10, 20), wanted)
    assert report.built is not None
    assert report.merged == MergeReport(0, 10, 0, 0, rewritten=8, shared=0)
    assert same(
        spark.table(table.sql), spark.sql(f"{rows(0, 10)} UNION ALL {changed(10, 20)} UNION ALL {rows(20, 4000)}")
    )


def test_most_files_changed_is_a_build_of_its_own(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    report = go(spark, changed(0, 4000), wanted)
    assert report.built is not None
    assert report.merged == MergeReport(0, 4000, 0, 0, rewritten=8, shared=0)


def test_delete_insert_replaces_rows_with_all_that_come(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    twice = f"{changed(100, 103)} UNION ALL {changed(100, 103)}"
    report = go(spark, twice, wanted, Merge(["id"], replaces_rows=True))
    assert report.merged is not None
    assert (report.merged.inserted, report.merged.deleted) == (6, 3)
    assert report.merged.shared >= 6
    assert same(spark.table(table.sql), spark.sql(f"{twice} UNION ALL {rows(0, 100)} UNION ALL {rows(103, 4000)}"))


def test_a_row_may_move_to_another_partition(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, partition_by=("p",))
    moved = f"SELECT id, a, s, p + 1 AS p FROM ({rows(6, 12)})"
    report = go(spark, moved, wanted)
    assert report.merged is not None
    assert (report.merged.updated, report.merged.inserted) == (6, 0)
    assert report.merged.shared > 0
    assert same(spark.table(table.sql), spark.sql(f"{moved} UNION ALL {rows(0, 6)} UNION ALL {rows(12, 4000)}"))


def test_files_of_another_writer_are_merged_and_stay(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    spark.sql(f"INSERT INTO {table.sql} {rows(4000, 4010)}")
    report = go(spark, changed(4005, 4006), wanted)
    assert report.merged == replace(MergeReport(0, 1, 0, 0), rewritten=1, shared=9)
    spark.sql(f"INSERT INTO {table.sql} {rows(5000, 5010)}")
    go(spark, changed(10, 11), wanted)
    parts = [rows(0, 10), changed(10, 11), rows(11, 4005), changed(4005, 4006), rows(4006, 4010), rows(5000, 5010)]
    assert same(spark.table(table.sql), spark.sql(" UNION ALL ".join(parts)))


def test_merges_and_appends_take_turns(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    increment(spark, spark.sql(rows(4000, 4100)), wanted, Batch(may_rewrite=False), begin(spark, table))
    go(spark, changed(4050, 4060), wanted)
    increment(spark, spark.sql(rows(4100, 4200)), wanted, Batch(may_rewrite=False), begin(spark, table))
    parts = [rows(0, 4050), changed(4050, 4060), rows(4060, 4200)]
    assert same(spark.table(table.sql), spark.sql(" UNION ALL ".join(parts)))
    assert verify_table(spark, table, None).findings == []


def test_new_columns_are_null_in_the_files_that_stay(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    batch = f"SELECT *, id + 1 AS extra FROM ({changed(10, 20)})"
    report = go(spark, batch, wanted, mode="append_new_columns")
    assert report.merged is not None
    assert report.merged.shared >= 6
    old = f"SELECT *, CAST(NULL AS BIGINT) AS extra FROM ({rows(0, 10)} UNION ALL {rows(20, 4000)})"
    assert same(spark.table(table.sql), spark.sql(f"{batch} UNION ALL {old}"))


def test_a_column_that_the_batch_lacks_keeps_its_values(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    with pytest.raises(SchemaChangeError, match="lacks columns of the table"):
        go(spark, f"SELECT id, a, p FROM ({changed(10, 20)})", wanted)
    batch = f"SELECT id, a, p FROM ({changed(10, 20)} UNION ALL {rows(4000, 4001)})"
    go(spark, batch, wanted, mode="append_new_columns")
    new = f"SELECT id, a, CAST(NULL AS STRING) AS s, p FROM ({rows(4000, 4001)})"
    parts = [rows(0, 10), changed(10, 20), rows(20, 4000), new]
    assert same(spark.table(table.sql), spark.sql(" UNION ALL ".join(parts)))


def test_columns_that_go_make_a_table_of_all_rows(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    report = go(spark, f"SELECT id, a, p FROM ({changed(10, 20)})", wanted, mode="sync_all_columns")
    assert report.built is not None
    parts = [rows(0, 10), changed(10, 20), rows(20, 4000)]
    assert same(spark.table(table.sql), spark.sql(" UNION ALL ".join(parts)).drop("s"))


def test_keys_that_match_nothing_are_warned_of(
    spark: SparkSession, table: TableName, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = made(spark, table)
    nulls = f"SELECT CAST(NULL AS BIGINT) AS id, a, s, p FROM ({rows(0, 2)})"
    with caplog.at_level(logging.WARNING, "dbt_zorder"):
        report = go(spark, f"{nulls} UNION ALL {rows(9000, 9001)} UNION ALL {changed(9000, 9001)}", wanted)
    assert report.merged is not None
    assert report.merged.inserted == 4
    assert "2 rows of this run have NULL in their unique_key (id)" in caplog.text
    assert "2 rows that this run inserts share their unique_key (id)" in caplog.text


@pytest.mark.parametrize(
    ("merge", "error", "words"),
    [
        (Merge(["idd"]), ColumnError, r"unique_key: There is no column 'idd'. Did you mean 'id'\?"),
        (Merge(["id", "m"]), ColumnError, "unique_key: The column 'm' is of type map<string,int>, whose values Spark"),
        (Merge(["id"], update_columns=["b"]), ColumnError, "merge_update_columns: There is no column 'b'"),
        (Merge(["id"], exclude_columns=["b"]), ColumnError, "merge_exclude_columns: There is no column 'b'"),
        (Merge(["id"], ["a"], ["s"]), ConfigError, "are both set"),
        (Merge(["id"], predicates=["DBT_INTERNAL_DEST.b > 1"]), ConfigError, "incremental_predicates: Spark cannot"),
        (Merge(["id"], predicates=["rand() < 0.5"]), ConfigError, "incremental_predicates: Spark cannot read"),
        (Merge(["id"], predicates=["a >"]), ConfigError, "incremental_predicates: Spark cannot read 'a >'"),
    ],
)
def test_bad_input_is_found_before_anything_is_written(
    spark: SparkSession, table: TableName, merge: Merge, error: type[Exception], words: str
) -> None:
    query = f"SELECT *, map('a', 1) AS m FROM ({rows(0, 40)})"
    wanted = made(spark, table, query)
    before = checksum(spark.table(table.sql).drop("m"))
    with pytest.raises(error, match=words):
        go(spark, query, wanted, merge)
    assert (checksum(spark.table(table.sql).drop("m")), len(versions(spark, table))) == (before, 1)


def test_two_rows_for_one_are_an_error_that_names_the_keys(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table)
    before = checksum(spark.table(table.sql))
    with pytest.raises(BuildError, match=r"1 rows? of .* match.* two rows of this run.*unique_key is id.*: 7\."):
        go(spark, f"{changed(7, 8)} UNION ALL {rows(7, 9)}", wanted)
    assert (checksum(spark.table(table.sql)), len(versions(spark, table))) == (before, 1)


def test_a_merge_beside_an_append_gives_up(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table)
    real = row_changes.TableFiles.write

    def beside(*given: Any) -> Any:
        spark.sql(f"INSERT INTO {table.sql} {rows(4000, 4001)}")
        return real(*given)

    monkeypatch.setattr(row_changes.TableFiles, "write", beside)
    with pytest.raises(BuildError, match="Another run added"):
        go(spark, changed(7, 8), wanted)
    spark.catalog.refreshTable(table.sql)
    assert same(spark.table(table.sql), spark.sql(rows(0, 4001)))
    assert len(versions(spark, table)) == 1


def test_a_table_in_another_format_is_an_error(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING csv AS {rows(0, 3)}")
    with pytest.raises(ZorderError, match="is in csv"):
        go(spark, rows(0, 9), request(table))


def test_a_table_of_dbt_spark_becomes_one_of_ours(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 100)}")
    report = go(spark, f"{changed(7, 8)} UNION ALL {rows(100, 110)}", request(table))
    assert report.built is not None
    assert same(spark.table(table.sql), spark.sql(f"{rows(0, 7)} UNION ALL {changed(7, 8)} UNION ALL {rows(8, 110)}"))


def test_a_predicate_on_the_clock_means_one_moment(spark: SparkSession, table: TableName) -> None:
    """What was matched is what is written: a row cannot leave the window between the two."""
    query = "SELECT id, id AS a, current_timestamp() - make_dt_interval(0, 0, 0, id / 100) AS ts FROM range(400)"
    wanted = replace(request(table, files=8, by=("id",)), stats_columns=())
    build(spark, spark.sql(query), wanted)
    merge = Merge(["id"], predicates=["DBT_INTERNAL_DEST.ts > current_timestamp() - INTERVAL 6 SECONDS"])
    batch = spark.sql("SELECT id, -1L AS a, TIMESTAMP '2020-01-01' AS ts FROM range(400)")
    report = merge_batch(spark, batch, wanted, Batch(may_rewrite=False), merge, begin(spark, table))
    assert report.merged is not None
    spark.catalog.refreshTable(table.sql)
    counts = spark.table(table.sql).groupBy("a").count().where("a = -1").collect()
    assert counts[0][1] == 400
    assert spark.table(table.sql).count() == 400 + report.merged.inserted
