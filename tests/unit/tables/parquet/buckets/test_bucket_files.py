"""A hash index: files carry Spark's bucket of their rows, and plain SQL joins and finds keys by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ColumnError, ConfigError
from dbt_zorder.layout.hash_index import BUCKET, HashIndex
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.buckets.bucket_files import bucket_of, check_ids
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.merge.row_changes import TableFiles
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.rewrite import optimize, request_from_marker
from dbt_zorder.tables.version import read_marker
from tests.support import checksum, settings
from tests.unit.tables.parquet.batches import files, folder, request, rows, same
from tests.unit.tables.parquet.buckets.tables import NOT_BUCKETED, PLANS, add, assert_indexed, by_id, exchanges, made


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_files_carry_sparks_buckets_and_joins_need_no_shuffle(
    spark: SparkSession, table: TableName, partition_by: tuple[str, ...]
) -> None:
    made(spark, table, partition_by=partition_by)
    assert_indexed(spark, table)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2000)))
    parts = 3 if partition_by else 1
    assert len(files(spark, table)) == 8 * parts
    with settings(spark, PLANS):
        assert exchanges(spark.sql(f"SELECT id, count(*) FROM {table.sql} GROUP BY id")) == 0
        other = spark.range(2000)
        assert exchanges(spark.table(table.sql).join(other, "id")) == 1, "of the other side alone"


def test_a_key_of_two_columns_in_another_case(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, hash_index=HashIndex(["S", "P"], 4))
    add(spark, rows(2000, 2010), wanted)
    info = describe(spark, table)
    assert info is not None
    assert (list(info.bucket_columns), info.bucket_count) == (["s", "p"], 4)
    assert len(files(spark, table)) <= 8 + 4, "a batch, not a build"
    assert verify_table(spark, table, None).findings == []
    with settings(spark, PLANS):
        assert exchanges(spark.sql(f"SELECT s, p, count(*) FROM {table.sql} GROUP BY s, p")) == 0


def test_a_look_up_reads_one_bucket(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    df = spark.table(table.sql).where("id = 77")
    bucket = spark.sql("SELECT pmod(hash(77L), 4)").collect()[0][0]
    read = {row[0] for row in spark.table(table.sql).where("id >= 0").selectExpr("input_file_name()").collect()}
    assert {bucket_of(path) for path in read} == {0, 1, 2, 3}
    names = {row[0] for row in df.selectExpr("input_file_name()").collect()}
    assert {bucket_of(path) for path in names} == {bucket}
    parts = df._jdf.queryExecution().toRdd().getNumPartitions()
    whole = spark.table(table.sql)._jdf.queryExecution().toRdd().getNumPartitions()
    assert parts <= whole


@pytest.mark.usefixtures("way")
def test_rows_stay_clustered_inside_a_bucket(spark: SparkSession, table: TableName) -> None:
    made(spark, table, query=rows(0, 20_000), files=64)
    place = folder(spark, table)
    touched = [
        path.name
        for path in Path(place).glob("part-*.parquet")
        if (bounds := pq.read_metadata(path).row_group(0).column(1).statistics).min <= 50 <= bounds.max
    ]
    assert len(touched) <= 20, "of 16 files a bucket, 4 have a value of one of two columns"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_batches_keep_to_the_buckets(spark: SparkSession, table: TableName, partition_by: tuple[str, ...]) -> None:
    wanted = made(spark, table, partition_by=partition_by)
    add(spark, rows(2000, 2400), wanted)
    add(spark, rows(2400, 2401), wanted)
    assert_indexed(spark, table)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2401)))


@pytest.mark.usefixtures("way")
def test_partitions_are_replaced_bucket_by_bucket(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, partition_by=("p",))
    add(spark, f"SELECT * FROM ({rows(5000, 5100)}) WHERE p = 1", wanted, overwrite=True)
    assert_indexed(spark, table)
    expected = f"SELECT * FROM ({rows(0, 2000)}) WHERE p <> 1 UNION ALL SELECT * FROM ({rows(5000, 5100)}) WHERE p = 1"
    assert same(spark.table(table.sql), spark.sql(expected))


def test_a_merge_keeps_to_the_buckets_and_shares_files(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, by=("id",), files=16)
    batch = f"SELECT id, -1L AS a, s, p FROM ({rows(100, 103)}) UNION ALL {rows(2000, 2002)}"
    before = begin(spark, table)
    report = merge_batch(spark, spark.sql(batch), wanted, Batch(may_rewrite=False), Merge(["id"]), before)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert report.merged is not None
    assert (report.merged.inserted, report.merged.updated) == (2, 3)
    assert report.merged.shared >= 10
    assert_indexed(spark, table)
    assert spark.sql(f"SELECT count(*) FROM {table.sql} WHERE a = -1").collect()[0][0] == 3


def test_a_merge_reads_only_the_buckets_of_its_keys(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, by=("a",), files=16, hash_index=by_id(8))
    read: list[str] = []
    rows_of = TableFiles.rows

    def noted(found: TableFiles, paths: Sequence[str]) -> DataFrame:
        read.extend(paths)
        return rows_of(found, paths)

    monkeypatch.setattr(TableFiles, "rows", noted)
    batch = f"SELECT id, -1L AS a, s, p FROM ({rows(7, 8)})"
    merge_batch(spark, spark.sql(batch), wanted, Batch(may_rewrite=False), Merge(["id"]), begin(spark, table))
    assert {bucket_of(path) for path in read} == {spark.sql("SELECT pmod(hash(7L), 8)").collect()[0][0]}


def test_another_number_of_buckets_is_a_new_version_and_a_rollback_returns_to_the_old(
    spark: SparkSession, table: TableName
) -> None:
    made(spark, table)
    twice = request(table, files=8, hash_index=by_id(8))
    add(spark, rows(2000, 2100), twice)
    assert_indexed(spark, table, 8)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2100)))
    rollback(spark, table)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert_indexed(spark, table, 4)
    assert same(spark.table(table.sql), spark.sql(rows(0, 2100))), "the batch came first"
    rollback(spark, table, _newest(spark, table))
    assert_indexed(spark, table, 8)


def test_a_merge_with_another_number_of_buckets_writes_all_rows(spark: SparkSession, table: TableName) -> None:
    made(spark, table, by=("id",))
    more = request(table, files=8, by=("id",), hash_index=by_id(6))
    before = begin(spark, table)
    report = merge_batch(spark, spark.sql(rows(1999, 2001)), more, Batch(may_rewrite=False), Merge(["id"]), before)
    assert report.merged is not None
    assert report.merged.shared == 0
    assert_indexed(spark, table, 6)


def test_without_clustered_by_the_next_run_drops_the_index(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    add(spark, rows(2000, 2001), request(table, files=8))
    info = describe(spark, table)
    assert info is not None
    assert info.bucket_count == 0
    assert not [name for name in files(spark, table) if bucket_of(name) is not None]
    assert same(spark.table(table.sql), spark.sql(rows(0, 2001)))


def test_an_index_comes_with_the_next_batch(spark: SparkSession, table: TableName) -> None:
    build(spark, spark.sql(rows(0, 300)), request(table))
    add(spark, rows(300, 310), request(table, files=8, hash_index=by_id()))
    assert_indexed(spark, table)


def test_a_table_is_optimized_without_its_model_by_its_marker(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    wanted = request_from_marker(spark, table)
    assert wanted.hash_index is not None
    assert (list(wanted.hash_index.by), wanted.hash_index.buckets) == (["`id`"], 4)
    report = optimize(spark, wanted, dry_run=False)
    assert report.version
    assert_indexed(spark, table)


def test_a_table_without_rows_has_its_buckets(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, query=f"{rows(0, 10)} WHERE false")
    assert spark.table(table.sql).count() == 0
    add(spark, rows(0, 50), wanted)
    assert_indexed(spark, table)
    add(spark, f"{rows(0, 10)} WHERE false", wanted)
    assert_indexed(spark, table)


TYPES = {
    "BOOLEAN": "id % 2 = 0",
    "TINYINT": "CAST(id % 100 - 50 AS TINYINT)",
    "SMALLINT": "CAST(id * 7 % 30000 AS SMALLINT)",
    "INT": "CAST(hash(id) AS INT)",
    "BIGINT": "xxhash64(id)",
    "DECIMAL(9,2)": "CAST(id AS DECIMAL(9,2)) - 100",
    "DECIMAL(18,0)": "CAST(id AS DECIMAL(18,0)) * 99999999999999",
    "DECIMAL(38,3)": "CAST(id AS DECIMAL(38,3)) * 99999999999999999999 - 7",
    "STRING": "concat(repeat('é', CAST(id % 5 AS INT)), CAST(id AS STRING))",
    "BINARY": "unhex(hex(xxhash64(id)))",
    "DATE": "date_add(DATE'1950-01-01', CAST(id AS INT) * 37)",
    "TIMESTAMP": "timestamp_micros(id * 7777777777)",
    "TIMESTAMP_NTZ": "CAST(timestamp_micros(id * 7777777777) AS TIMESTAMP_NTZ)",
}


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_each_type_are_found_by_plain_sql(spark: SparkSession, table: TableName, kind: str) -> None:
    query = f"SELECT id, if(id % 17 = 0, NULL, CAST({TYPES[kind]} AS {kind})) AS k FROM range(600)"
    build(spark, spark.sql(query), request(table, by=("id",), files=4, hash_index=HashIndex(["k"], 4)))
    assert verify_table(spark, table, None).findings == []
    everywhere = spark.sql(f"SELECT one.id FROM {table.sql} one JOIN {table.sql} two ON one.k <=> two.k")
    with settings(spark, PLANS):
        found = checksum(everywhere)
        with settings(spark, NOT_BUCKETED):
            assert checksum(everywhere) == found
    plain = {row[0]: row[1] for row in spark.sql(query).where("id IN (0, 1, 31, 599)").collect()}
    for number, key in plain.items():
        where = f"k <=> (SELECT k FROM ({query}) WHERE id = {number})"
        literal = spark.sql(query).where(f"id = {number}").selectExpr("CAST(k AS STRING)").collect()[0][0]
        if key is not None and kind not in ("BINARY",):
            where = f"k = CAST('{literal}' AS {kind})"
        assert number in {row[0] for row in spark.table(table.sql).where(where).select("id").collect()}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"hash_index": HashIndex(["ids"], 4)}, "no column 'ids'.*Did you mean 'id'"),
    ({"hash_index": HashIndex(["f"], 4)}, "'f', which is a double"),
    ({"hash_index": HashIndex(["st"], 4)}, "'st' of type struct"),
    ({"hash_index": HashIndex(["st.x"], 4)}, "'st.x', a field inside a column"),
    ({"hash_index": HashIndex(["p"], 4), "partition_by": ("p",)}, "'p', a partition column"),
    ({"hash_index": HashIndex(["id", "ID"], 4)}, "'id' is named twice"),
]


@pytest.mark.parametrize(("more", "message"), BAD)
def test_a_key_that_cannot_serve_is_an_error(
    spark: SparkSession, table: TableName, more: dict[str, Any], message: str
) -> None:
    query = f"SELECT *, CAST(id AS DOUBLE) AS f, struct(1 AS x) AS st FROM ({rows(0, 10)})"
    with pytest.raises((ColumnError, ConfigError), match=message):
        build(spark, spark.sql(query), request(table, **more))
    assert describe(spark, table) is None


def test_the_name_of_the_bucket_is_reserved(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ColumnError, match="reserves while rows are placed"):
        build(spark, spark.sql(f"SELECT *, 1 AS {BUCKET} FROM ({rows(0, 10)})"), request(table, hash_index=by_id()))


def test_another_type_of_the_key_is_hashed_anew(spark: SparkSession, table: TableName) -> None:
    query = "SELECT CAST(id AS INT) AS id, id AS a, 'k' AS s, 1 AS p FROM range(300)"
    wanted = made(spark, table, query=query)
    add(spark, rows(300, 310), wanted, on_schema_change="sync_all_columns")
    assert_indexed(spark, table)
    assert spark.table(table.sql).count() == 310


@pytest.mark.parametrize(
    ("old", "new"), [("INT", "BIGINT"), ("BIGINT", "INT"), ("STRING", "BIGINT"), ("INT", "STRING")]
)
@pytest.mark.parametrize("index", [by_id(16), None])
def test_a_merge_that_gives_its_key_another_type_finds_the_rows(
    spark: SparkSession, table: TableName, old: str, new: str, index: HashIndex | None
) -> None:
    query = "SELECT CAST(id AS {}) AS id, {} AS a, 'k' AS s, 1 AS p FROM range({}, {})"
    wanted = made(spark, table, query=query.format(old, "id", 0, 300), hash_index=index, by=("id", "a"))
    before, batch = begin(spark, table), Batch(may_rewrite=False, on_schema_change="sync_all_columns")
    rows_in = spark.sql(query.format(new, "-1L", 5, 8))
    report = merge_batch(spark, rows_in, wanted, batch, Merge(["id"]), before)
    assert report.merged is not None
    assert (report.merged.inserted, report.merged.updated) == (0, 3)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert spark.table(table.sql).count() == 300
    assert verify_table(spark, table, None).findings == []


def test_verify_finds_files_in_wrong_buckets(spark: SparkSession, table: TableName) -> None:
    made(spark, table)
    place = folder(spark, table)
    one, two = sorted(Path(place).glob("part-*.parquet"))[:2]
    one.rename(place / one.name.replace(f"_{bucket_of(one.name):05d}.", "_00009."))
    two.rename(place / two.name.replace(f"_{bucket_of(two.name):05d}.", f"_{(bucket_of(two.name) or 0) ^ 1:05d}."))
    spark.sql(f"REFRESH TABLE {table.sql}")
    found = "\n".join(verify_table(spark, table, None).findings)
    assert "_00009" in found
    assert "belong to another bucket" in found


@pytest.mark.parametrize("name", ["part-0-x.c000.parquet", "part-0-x_00004.c000.parquet", "sales_2024.parquet"])
def test_a_version_with_a_file_outside_its_buckets_is_not_served(name: str) -> None:
    with pytest.raises(BuildError, match="from 0 to 3 in its name"):
        check_ids([f"file:/x/{name}"], 4)
    check_ids(["file:/x/part-0-x_00003.c000.snappy.parquet"], 4)


def _newest(spark: SparkSession, table: TableName) -> str:
    root = folder(spark, table).parent
    versions = sorted(path.name for path in root.iterdir() if path.name.startswith("v"))
    marker = read_marker(spark, str(root / versions[-1]))
    assert marker is not None
    assert marker.buckets == 8
    return versions[-1]
