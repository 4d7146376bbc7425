"""What the tests of hash indexes share: a table with one, batches for it, and the check that all of it agrees."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.hash_index import BUCKET, HashIndex
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.verify import verify_table
from tests.support import settings
from tests.unit.tables.parquet.batches import assert_sound, files, request, rows

PLANS = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"}
NOT_BUCKETED = {"spark.sql.sources.bucketing.enabled": "false"}


def by_id(buckets: int = 4) -> HashIndex:
    return HashIndex(["id"], buckets)


def made(spark: SparkSession, table: TableName, query: str = rows(0, 2000), **more: Any) -> BuildRequest:
    wanted = request(table, **{"hash_index": by_id(), "files": 8, **more})
    build(spark, spark.sql(query), wanted)
    spark.sql(f"REFRESH TABLE {table.sql}")
    return wanted


def add(spark: SparkSession, query: str, wanted: BuildRequest, **more: Any) -> Any:
    before = begin(spark, wanted.table)
    report = increment(spark, spark.sql(query), wanted, Batch(may_rewrite=False, **more), before)
    spark.sql(f"REFRESH TABLE {wanted.table.sql}")
    return report


def exchanges(df: DataFrame) -> int:
    return str(df._jdf.queryExecution().executedPlan().toString()).count("Exchange hashpartitioning")


def assert_indexed(spark: SparkSession, table: TableName, buckets: int = 4) -> None:
    """The catalog, the names and the rows agree, and a join by buckets finds what a shuffled one finds."""
    info = describe(spark, table)
    assert info is not None
    assert (list(info.bucket_columns), info.bucket_count) == (["id"], buckets)
    assert verify_table(spark, table, None).findings == []
    assert not [name for name in files(spark, table) if BUCKET in name]
    join = f"SELECT count(*), count(DISTINCT one.id), sum(two.a) FROM {table.sql} one JOIN {table.sql} two USING (id)"
    with settings(spark, PLANS):
        df = spark.sql(join.replace("count(DISTINCT one.id), ", ""))
        assert exchanges(df) == 0
        found = spark.sql(join).collect()
        with settings(spark, NOT_BUCKETED):
            assert spark.sql(join).collect() == found
    assert_sound(spark, table)
