"""Files are split by further bits of the hash: no shuffle, no sort, and every part keeps the order of its file."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.conf import OPEN_FILES
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet.buckets.bucket_files import bucket_of
from dbt_zorder.tables.parquet.buckets.bucket_number import is_split_wanted, with_table_buckets
from dbt_zorder.tables.parquet.buckets.bucket_split import split_layout
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.rewrite import optimize, split
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.report import Outcome
from tests.support import settings, versions
from tests.unit.tables.parquet.batches import files, folder, request, rows, same
from tests.unit.tables.parquet.buckets.tables import add, assert_indexed, by_id, made


def ids_of_files(spark: SparkSession, table: TableName) -> dict[str, list[int]]:
    """Return the ids of the rows of each file, in their order there."""
    place = folder(spark, table)
    return {name: pq.read_table(place / name, columns=["id"])["id"].to_pylist() for name in files(spark, table)}


def bucket(spark: SparkSession, buckets: int, end: int) -> dict[int, int]:
    return {row[0]: row[1] for row in spark.range(end).selectExpr("id", f"pmod(hash(id), {buckets})").collect()}


def last_plan(spark: SparkSession, text: str) -> str:
    """Return the plan of the last statement whose plan has a text."""
    store: Any = spark._jsparkSession.sharedState().statusStore()
    listed = store.executionsList()
    plans = [str(listed.apply(n).physicalPlanDescription()) for n in range(listed.size())]
    return [plan for plan in plans if text in plan][-1]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_a_split_moves_no_row_past_another(
    spark: SparkSession, table: TableName, partition_by: tuple[str, ...], times: int
) -> None:
    query = rows(0, 2000, "nullif(id % 3, 2)")
    made(spark, table, query=query, partition_by=partition_by)
    before, buckets = ids_of_files(spark, table), bucket(spark, 4 * times, 2000)
    wanted = request(table, files=8, partition_by=partition_by, hash_index=by_id(4 * times))
    report = split(spark, wanted)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert (report.splits, report.buckets) == (True, f"{4 * times} buckets in place of 4")
    assert_indexed(spark, table, 4 * times)
    assert same(spark.table(table.sql), spark.sql(query))
    parts = {tuple(ids): name for name, ids in ids_of_files(spark, table).items()}
    for name, ids in before.items():
        for number in {buckets[one] for one in ids}:
            part = parts.pop(tuple(one for one in ids if buckets[one] == number))
            assert bucket_of(part) == number
            assert part.rpartition("/")[0] == name.rpartition("/")[0], "of the same partition"
    assert not parts
    plan = last_plan(spark, "InsertIntoHadoopFsRelationCommand")
    assert "Exchange" not in plan
    assert "Sort" not in plan


def test_the_trees_of_a_split_table_place_its_batches_like_the_table(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, query=rows(0, 8000), files=16, partition_by=("p",))
    schema = spark.table(table.sql).schema
    one = read_tree(spark, str(folder(spark, table)), schema)
    wanted = request(table, files=16, partition_by=("p",), hash_index=by_id(8))
    split(spark, wanted)
    two = read_tree(spark, str(folder(spark, table)), schema)
    assert one is not None
    assert two is not None
    assert one.layout is not None
    assert two.layout is not None
    assert (two.layout.trees, two.layout.files) == (2 * one.layout.trees, 2 * one.layout.files)
    assert Counter(two.layout.files_of_trees.tolist()) == Counter(one.layout.files_of_trees.tolist() * 2)
    assert two.built.files == 2 * one.built.files
    assert two.built.bytes == one.built.bytes
    for number in (8000, 8500):
        report = add(spark, rows(number, number + 500), wanted)
        assert report.built is None, "appended"
    assert_indexed(spark, table, 8)
    assert same(spark.table(table.sql), spark.sql(rows(0, 9000)))


def test_a_batch_keeps_the_number_and_a_split_follows(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    twice = request(table, files=8, hash_index=by_id(8))
    report = add(spark, rows(2000, 2100), twice)
    assert report.appended.rows == 100
    assert report.built.splits
    assert ", files split, 8 buckets in place of 4, now " in str(Outcome.of_increment(report))
    assert_indexed(spark, table, 8)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2100)))
    report = add(spark, rows(2100, 2101), twice)
    assert report.built is None
    rollback(spark, table)
    assert_indexed(spark, table, 4)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2100)))
    report = add(spark, f"{rows(0, 10)} WHERE false", twice)
    assert str(Outcome.of_increment(report)) == "no new rows, files split, 8 buckets in place of 4"
    assert_indexed(spark, table, 8)


@pytest.mark.parametrize("buckets", [2, 6, 12])
def test_another_number_than_a_power_of_two_times_rebuilds(spark: SparkSession, table: TableName, buckets: int) -> None:
    made(spark, table)
    report = add(spark, rows(2000, 2001), request(table, files=8, hash_index=by_id(buckets)))
    assert report.appended is None
    assert_indexed(spark, table, buckets)


def test_a_table_without_a_saved_layout_is_rebuilt(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    twice = request(table, files=8, hash_index=by_id(8))
    for part in (folder(spark, table) / "_zorder_tree").iterdir():
        part.unlink()
    assert not split(spark, twice).splits
    assert_indexed(spark, table, 8)


def test_a_merge_shares_files_and_a_split_follows(spark: SparkSession, table: TableName) -> None:
    made(spark, table, by=("id",), files=16)
    twice = request(table, files=16, by=("id",), hash_index=by_id(8))
    batch = f"SELECT id, -1L AS a, s, p FROM ({rows(1999, 2001)})"
    before = begin(spark, table)
    report = merge_batch(spark, spark.sql(batch), twice, Batch(may_rewrite=False), Merge(["id"]), before)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert report.merged is not None
    assert report.merged.shared >= 14
    assert report.built is not None
    assert report.built.splits
    assert_indexed(spark, table, 8)
    assert spark.table(table.sql).where("a = -1").count() == 2
    assert spark.table(table.sql).count() == 2001


def test_partitions_are_replaced_before_the_split(spark: SparkSession, table: TableName) -> None:
    made(spark, table, partition_by=("p",))
    twice = request(table, files=8, partition_by=("p",), hash_index=by_id(8))
    report = add(spark, f"SELECT * FROM ({rows(5000, 5100)}) WHERE p = 1", twice, overwrite=True)
    assert report.built.splits
    assert_indexed(spark, table, 8)
    expected = f"SELECT * FROM ({rows(0, 2000)}) WHERE p <> 1 UNION ALL SELECT * FROM ({rows(5000, 5100)}) WHERE p = 1"
    assert same(spark.table(table.sql), spark.sql(expected))


@pytest.mark.parametrize(
    ("by", "curve", "splits"),
    [(("A", "s"), "zorder", True), (("s", "a"), "zorder", False), (("a", "s"), "hilbert", False)],
)
def test_optimize_splits_if_the_number_of_buckets_alone_differs(
    spark: SparkSession, table: TableName, by: tuple[str, ...], curve: str, splits: bool
) -> None:
    made(spark, table)
    wanted = request(table, files=8, by=by, hash_index=by_id(8), curve=curve)
    planned = optimize(spark, wanted, dry_run=True)
    assert (planned.buckets, planned.files_after) == ((8, 16) if splits else (0, 8))
    assert len(versions(spark, table)) == 1
    assert ("would be split into about 16, for 8 buckets." in str(planned)) is splits
    done = optimize(spark, wanted, dry_run=False)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert (done.buckets, done.files_after) == (planned.buckets, len(files(spark, table)))
    assert_indexed(spark, table, 8)


@pytest.mark.parametrize("step", ["split_layout", "collect_path", "write_stats", "check_version", "publish"])
def test_a_split_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, table: TableName, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(spark, table)
    twice, before = request(table, files=8, hash_index=by_id(8)), versions(spark, table)

    def struck(*_: Any, **__: Any) -> None:
        msg = f"struck at {step}"
        raise BuildError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, step, struck)
        with pytest.raises(BuildError, match="struck at"):
            split(spark, twice)
        report = add(spark, rows(2000, 2010), twice)
        assert (report.appended.rows, report.built) == (10, None), "the batch is in the table, and the split is left"
    assert versions(spark, table) == before
    assert_indexed(spark, table, 4)
    assert add(spark, f"{rows(0, 10)} WHERE false", twice).built.splits
    assert_indexed(spark, table, 8)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2010)))


def test_a_split_gives_up_if_rows_were_added_meanwhile(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table)

    def beside(*args: Any) -> Layout:
        add(spark, rows(2000, 2001), wanted)
        return split_layout(*args)

    monkeypatch.setattr(build_module, "split_layout", beside)
    with pytest.raises(BuildError, match="Another run added 1 and removed 0 files"):
        split(spark, request(table, files=8, hash_index=by_id(8)))
    assert_indexed(spark, table, 4)


def test_the_settings_of_the_session_stay(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    keys = {OPEN_FILES: "1", "spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.minPartitionNum": "7"}
    with settings(spark, keys):
        before = ids_of_files(spark, table)
        split(spark, request(table, files=8, hash_index=by_id(8)))
        assert {key: spark.conf.get(key) for key in keys} == keys
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert len(ids_of_files(spark, table)) == 2 * len(before), "each file was read by one task"
    assert_indexed(spark, table, 8)


def test_a_bloom_filter_and_the_codec_are_in_the_parts(spark: SparkSession, table: TableName) -> None:
    more: dict[str, Any] = {"bloom": ("id",), "options": {"compression": "gzip"}}
    made(spark, table, **more)
    split(spark, request(table, files=8, hash_index=by_id(8), **more))
    place = folder(spark, table)
    for name in files(spark, table):
        group = pq.read_metadata(place / name).row_group(0)
        assert [group.column(n).compression for n in range(group.num_columns)] == ["GZIP"] * group.num_columns
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert_indexed(spark, table, 8)


def test_settings_of_a_batch_have_the_number_of_the_table(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    info, schema = describe(spark, table), spark.table(table.sql).schema
    assert info is not None
    for asked, used in [(8, 4), (64, 4), (4, 4), (2, 2), (12, 12), (6, 6), (None, 4)]:
        wanted = request(table, hash_index=HashIndex(["ID"], asked))
        found = with_table_buckets(info, wanted, schema, sensitive=case_sensitive(spark))
        assert found.hash_index == HashIndex(["ID"], used)
        assert is_split_wanted(wanted, found) is (asked in (8, 64))
    other = request(table, hash_index=HashIndex(["a"], 8))
    assert with_table_buckets(info, other, schema, sensitive=case_sensitive(spark)) == other
