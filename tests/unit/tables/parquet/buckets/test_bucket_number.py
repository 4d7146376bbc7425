"""The number of buckets of `auto`: a build chooses it, batches keep it, and a rewrite of a larger table raises it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.hash_index import HashIndex, splits_into
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.rewrite import optimize
from dbt_zorder.tables.report import Outcome
from dbt_zorder.tables.save import save_table
from dbt_zorder.tables.version import read_marker
from tests.unit.tables.parquet.batches import files, request, rows, same
from tests.unit.tables.parquet.buckets.tables import add, assert_indexed, by_id, made

AUTO = HashIndex(["id"], None)


def marked(spark: SparkSession, table: TableName) -> int:
    info = describe(spark, table)
    assert info is not None
    marker = read_marker(spark, info.location)
    assert marker is not None
    return marker.buckets


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("query", "more", "buckets"),
    [
        (rows(0, 2000), {"files": 64}, 4),
        (rows(0, 2000), {"files": 64, "by": ("a",)}, 8),
        (rows(0, 2000), {"files": 64, "partition_by": ("p",)}, 4),
        (rows(0, 2000), {"files": None}, 2),
        (f"SELECT id, max(a) AS a, max(s) AS s, max(p) AS p FROM ({rows(0, 2000)}) GROUP BY id", {"files": 64}, 4),
        (f"{rows(0, 2000)} WHERE false", {"files": 64}, 2),
    ],
)
def test_a_build_chooses_the_number_by_its_files(
    spark: SparkSession, table: TableName, query: str, more: dict[str, Any], buckets: int
) -> None:
    report = build(spark, spark.sql(query), request(table, hash_index=AUTO, **more))
    assert report.buckets == f"{buckets} buckets"
    assert str(Outcome.of_build(report)).endswith(f"{buckets} buckets")
    assert marked(spark, table) == buckets
    if report.summary.rows:
        assert_indexed(spark, table, buckets)


def test_the_size_of_files_counts(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=None, file_size=1000, by=("a",), hash_index=AUTO)
    build(spark, spark.sql(rows(0, 4000)), wanted)
    buckets = marked(spark, table)
    assert buckets in (4, 8, 16)
    assert_indexed(spark, table, buckets)


def test_batches_and_merges_keep_the_number(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, files=64, hash_index=AUTO)
    before = files(spark, table)
    assert add(spark, rows(2000, 4000), wanted).built is None
    assert before < files(spark, table)
    batch = f"SELECT id, -1L AS a, s, p FROM ({rows(5, 6)})"
    merge_batch(spark, spark.sql(batch), wanted, Batch(may_rewrite=False), Merge(["id"]), begin(spark, table))
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert_indexed(spark, table, 4)
    assert spark.table(table.sql).where("a = -1").count() == 1


def test_a_table_with_a_number_keeps_it_as_auto_unless_it_is_too_small(spark: SparkSession, table: TableName) -> None:
    made(spark, table, hash_index=by_id(8))
    wanted = request(table, files=8, hash_index=AUTO)
    assert add(spark, rows(2000, 2010), wanted).built is None
    report = build(spark, spark.sql(rows(0, 300)), wanted)
    assert (report.buckets, marked(spark, table)) == ("8 buckets", 8), "never fewer"
    report = build(spark, spark.sql(rows(0, 5000)), request(table, files=4096, hash_index=AUTO))
    assert (report.buckets, marked(spark, table)) == ("16 buckets in place of 8", 16)
    report = build(spark, spark.sql(rows(0, 300)), request(table, files=8, hash_index=HashIndex(["a"], None)))
    assert marked(spark, table) == 2, "of another key"


def test_a_due_rewrite_raises_the_number(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=None, file_size=1000, by=("a",), hash_index=AUTO)
    build(spark, spark.sql(rows(0, 1200)), wanted)
    first, line, end = marked(spark, table), "", 1200
    while "rewritten" not in line:
        before = begin(spark, table)
        batch = spark.sql(rows(end, 2 * end))
        line = str(Outcome.of_increment(increment(spark, batch, wanted, Batch(), before)))
        spark.sql(f"REFRESH TABLE {table.sql}")
        end *= 2
        assert end < 40_000, "a rewrite comes when the table has doubled"
    now = marked(spark, table)
    assert splits_into(first, now), "2, 4, 8, ... times the number"
    assert f"table rewritten, {now} buckets in place of {first}, now " in line
    assert_indexed(spark, table, now)
    assert same(spark.table(table.sql), spark.sql(rows(0, end)))


def test_optimize_chooses_the_number_anew(spark: SparkSession, table: TableName) -> None:
    made(spark, table, files=8)
    wanted = request(table, files=512, hash_index=AUTO)
    assert optimize(spark, wanted, dry_run=True).buckets == 0
    optimize(spark, wanted, dry_run=False)
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert_indexed(spark, table, 8)


def test_an_index_of_auto_comes_with_the_next_batch(spark: SparkSession, table: TableName) -> None:
    build(spark, spark.sql(rows(0, 300)), request(table))
    add(spark, rows(300, 310), request(table, files=64, hash_index=AUTO))
    assert_indexed(spark, table, 4)
    assert same(spark.table(table.sql), spark.sql(rows(0, 310)))


def test_save_table_chooses_the_number(spark: SparkSession, table: TableName) -> None:
    df, index = spark.sql(rows(0, 2000)), {"files": 64, "clustered_by": "id"}
    saved = save_table(df, str(table), ["a", "s"], buckets="auto", **index)  # type: ignore[arg-type]
    assert saved.line.endswith(", 4 buckets")
    assert_indexed(spark, table)
    with pytest.raises(ConfigError, match="'atuo', but it must be 'auto', or a whole"):
        save_table(df, str(table), ["a", "s"], "overwrite", buckets="atuo", **index)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="buckets is set without clustered_by"):
        save_table(df, str(table), ["a", "s"], "overwrite", buckets="auto")
