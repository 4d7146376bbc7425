"""Merges that are struck at each step, and readers beside merges: all of a merge is there, or none of it.

CI strikes a share of the points and merges four times; `make soak-faults` strikes all of them and merges 100 times.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.verify import verify_table
from tests.faults.points import POINTS, Injected, Strike, armed, raise_injected
from tests.support import checksum, unique

SOAK = bool(os.environ.get("SOAK_FAULTS"))
# a version that shares files has the layout of the one before, so there is nothing to plan
STRUCK = [name for name in POINTS if "make_plan" not in name]
MERGES, READERS = (100, 8) if SOAK else (4, 2)


def request(table: TableName) -> BuildRequest:
    return BuildRequest(table, LayoutSpec(by=("id",), files=8), key_columns=("id",))


def make(spark: SparkSession) -> TableName:
    table = TableName("default", unique("merged"))
    build(spark, spark.sql("SELECT id, 0L AS n FROM range(4000)"), request(table))
    return table


def merge(spark: SparkSession, table: TableName, number: int) -> None:
    """Set ``n`` of ten rows in each of two files, and add a row."""
    rows = f"SELECT id, {number}L AS n FROM range(10) UNION ALL SELECT id + 3000, {number}L FROM range(10)"
    query = f"{rows} UNION ALL SELECT {4000 + number}L, {number}L"
    before = begin(spark, table)
    merge_batch(spark, spark.sql(query), request(table), Batch(may_rewrite=False), Merge(["id"]), before)


def expected(spark: SparkSession, numbers: list[int]) -> tuple[int, int]:
    """Return the checksum of a table after merges of these numbers."""
    last = numbers[-1] if numbers else 0
    changed = f"if(id < 10 OR id BETWEEN 3000 AND 3009, {last}L, 0L)"
    added = "".join(f" UNION ALL SELECT {4000 + number}L, {number}L" for number in numbers)
    return checksum(spark.sql(f"SELECT id, {changed} AS n FROM range(4000){added}"))


@pytest.mark.parametrize("name", STRUCK if SOAK else STRUCK[::6])
def test_a_struck_merge_is_there_as_a_whole_or_not_at_all(spark: SparkSession, name: str) -> None:
    table, point = make(spark), POINTS[name]
    merge(spark, table, 1)
    info = describe(spark, table)
    assert info is not None
    strike = Strike(raise_injected)
    harmless = name == "mid publish" or "publish_stats" in name or "collect_old" in name
    outcome = contextlib.nullcontext() if harmless else pytest.raises(Injected)
    root = Path(info.location.removeprefix("file:")).parent
    with armed(point, strike, spark, root), outcome:
        merge(spark, table, 2)
    assert strike.fired
    spark.catalog.refreshTable(table.sql)
    assert checksum(spark.table(table.sql)) == expected(spark, [1, 2] if point.new else [1])
    merge(spark, table, 2)
    spark.catalog.refreshTable(table.sql)
    assert checksum(spark.table(table.sql)) == expected(spark, [1, 2])
    assert verify_table(spark, table, None).findings == []


def test_readers_see_whole_merges_alone(spark: SparkSession) -> None:
    table = make(spark)
    allowed = {expected(spark, [*range(1, number + 1)]) for number in range(MERGES + 1)}
    seen: Counter[tuple[int, int]] = Counter()
    done, errors = threading.Event(), []

    def read() -> None:
        session = spark.newSession()
        while not done.is_set():
            try:
                session.catalog.refreshTable(table.sql)
                seen[checksum(session.table(table.sql))] += 1
            except Exception as exc:
                errors.append(exc)
                return

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, MERGES + 1):
            merge(spark, table, number)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert errors == []
    assert set(seen) <= allowed
    assert sum(seen.values()) >= MERGES
