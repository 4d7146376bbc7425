"""Splits that are struck at each step: the table has the old or the new number of buckets, and all of its rows.

CI strikes a share of the points; `make soak-faults` strikes all of them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.rewrite import split
from tests.faults.points import POINTS, Injected, Strike, armed, raise_injected
from tests.support import checksum, unique, versions

SOAK = bool(os.environ.get("SOAK_FAULTS"))
# a split has the layout of the version before, and Spark writes file by file
STRUCK = [name for name in POINTS if "make_plan" not in name and "write_data" not in name]
QUERY = "SELECT id, id % 7 AS n FROM range(4000)"


def request(table: TableName, buckets: int) -> BuildRequest:
    """Return the request of a table of eight files; versions are deleted at once, so that leftovers show."""
    spec, index = LayoutSpec(by=("n",), files=8), HashIndex(["id"], buckets)
    return BuildRequest(table, spec, keep_versions=0, grace_hours=0, hash_index=index)


@pytest.mark.parametrize("name", STRUCK if SOAK else STRUCK[::5])
def test_a_struck_split_is_there_as_a_whole_or_not_at_all(spark: SparkSession, name: str) -> None:
    table, point = TableName("default", unique("split")), POINTS[name]
    build(spark, spark.sql(QUERY), request(table, 4))
    info = describe(spark, table)
    assert info is not None
    strike = Strike(raise_injected)
    harmless = name == "mid publish" or "publish_stats" in name or "collect_old" in name
    outcome = contextlib.nullcontext() if harmless else pytest.raises(Injected)
    with armed(point, strike, spark, Path(info.location.removeprefix("file:")).parent), outcome:
        split(spark, request(table, 8))
    assert strike.fired
    now = check(spark, table)
    assert now == (8 if point.new else 4)
    split(spark, request(table, 2 * now))
    assert check(spark, table) == 2 * now
    assert verify_table(spark, table, None).findings == []
    vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    assert len(versions(spark, table)) == 1


def check(spark: SparkSession, table: TableName) -> int:
    """Check rows and buckets, with and without a bucketed scan, and return the number of buckets."""
    spark.catalog.refreshTable(table.sql)
    assert checksum(spark.table(table.sql)) == checksum(spark.sql(QUERY))
    joined = f"SELECT /*+ MERGE(one) */ count(*) FROM {table.sql} one JOIN {table.sql} two USING (id)"
    assert spark.sql(joined).collect()[0][0] == 4000
    findings = verify_table(spark, table, None).findings
    assert [one for one in findings if "__zorder_stats does not show" not in one] == [], (
        "buckets, files and stats agree"
    )
    info = describe(spark, table)
    assert info is not None
    return info.bucket_count
