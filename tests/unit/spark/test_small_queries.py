from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.layout.sample import draw, fetch_keys
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark import small_queries as small
from dbt_zorder.spark.arrow import collect_arrow
from tests.unit.layout.frames import mixed
from tests.unit.layout.test_sample import ONE, keys


def test_an_estimate_of_a_scan_is_the_bytes_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1000).coalesce(1).write.mode("overwrite").parquet(str(tmp_path))
    size = sum(file.stat().st_size for file in tmp_path.glob("*.parquet"))
    scan = spark.read.parquet(str(tmp_path))
    assert small.estimated_bytes(scan) == size
    assert small.estimated_bytes(scan.where("id % 7 = 0")) == size
    assert (small.estimated_bytes(scan.crossJoin(scan.toDF("other"))) or 0) > 100 * size


def test_files_tell_how_large_a_table_of_their_columns_may_become(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql("SELECT id, string(id) AS s FROM range(5000)").write.parquet(f"{tmp_path}/rows")
    scan = spark.read.parquet(f"{tmp_path}/rows")
    size = small.estimated_bytes(scan)
    assert size
    assert small.greatest_bytes(scan) == 6 * size
    assert small.greatest_bytes(scan.where("id > 7").select("s", "id")) == 6 * size
    for other in (
        scan.selectExpr("id", "repeat(s, 1000) AS s"),
        scan.selectExpr("id", "s", "explode(sequence(1, id % 100)) AS n").where("n > 1").select("id", "s"),
        scan.unionAll(scan),
        scan.crossJoin(scan.toDF("i", "t")),
        spark.range(9),
        spark.sql("SELECT 1 AS id"),
    ):
        assert small.greatest_bytes(other) is None
    spark.sql(f"CREATE TABLE {database}.files_tell USING parquet LOCATION '{tmp_path}/rows'")
    table = f"{database}.files_tell"
    assert small.greatest_bytes(spark.table(table)) == 6 * size
    scan.write.mode("append").parquet(f"{tmp_path}/rows")
    spark.catalog.refreshTable(table)
    assert (small.greatest_bytes(spark.table(table)) or 0) > 11 * size, "whatever the catalog still says"
    assert (small.estimated_bytes(spark.table(table)) or 0) < 2 * size


def test_few_rows_are_fetched_and_many_are_not(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.range(0, 100, 1, 4)
    fetched = small.fetch_few(rows, rows, 1000)
    assert fetched is not None
    assert fetched.column_names == ["id"]
    assert sorted(fetched["id"].to_pylist()) == list(range(100))
    sent = []

    def noted(df: DataFrame) -> pa.Table:
        sent.append(table := collect_arrow(df))
        return table

    monkeypatch.setattr(small, "collect_arrow", noted)
    assert small.fetch_few(rows, rows, 4 * 26) is not None
    assert small.fetch_few(rows, rows, 4 * 25 + 3) is None, "whether that was all is unclear"
    assert small.fetch_few(rows, rows, 4 * 7) is None
    assert [table.num_rows for table in sent] == [100, 100, 28], "no task sends more than its share"
    assert small.fetch_few(rows, rows, 3) is None
    assert len(sent) == 3
    assert small.fetch_few(rows.where("false"), rows.where("false"), 4) is not None
    one_sided = rows.where("id < 25")
    assert small.fetch_few(one_sided, one_sided, 99) is None


@pytest.mark.parametrize("where", ["true", "false"])
@pytest.mark.parametrize("partition_by", [[], ["p"]])
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_a_layout_is_the_same_whether_keys_were_fetched_or_counted_and_sampled(
    spark: SparkSession, where: str, partition_by: list[str], curve: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.sql(mixed(3000)).where(where)
    spec = LayoutSpec(by=["a", "s", "d"], files=5, partition_by=partition_by, curve=curve)
    assert fetch_keys(frame, keys(frame, *spec.by), None) is not None
    once = plan_layout(frame, spec)
    monkeypatch.setattr("dbt_zorder.layout.sample.SMALL_BYTES", -1)
    assert fetch_keys(frame, keys(frame, *spec.by), None) is None
    assert repr(plan_layout(frame, spec)) == repr(once)
    assert once.rows == frame.count()


@pytest.mark.parametrize(("size", "jobs"), [(1 << 30, 1), (0, 3)])
def test_keys_that_are_fetched_take_one_job(
    spark: SparkSession, size: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbt_zorder.layout.sample.SMALL_BYTES", size)
    group = f"small-{size}"
    spark.sparkContext.setJobGroup(group, "")
    try:
        plan_layout(spark.sql(mixed(3000)), LayoutSpec(by=["a"], files=3))
    finally:
        spark.sparkContext.setJobGroup("", "")
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) == jobs


def test_a_part_of_what_was_fetched_is_drawn_by_the_seed(spark: SparkSession) -> None:
    frame = spark.range(20_000)
    by = keys(frame, "id")
    fetched = fetch_keys(frame, by, None)
    assert fetched is not None
    seeds: list[Any] = [-3, np.int64(-3), 4]
    one, again, other = (draw(frame, by, 1000, 20_000, seed, None, ONE, fetched) for seed in seeds)
    assert one.distinct[0].equals(again.distinct[0])
    assert not one.distinct[0].equals(other.distinct[0])
    assert len(one.ranks) == 1000
    assert np.median(one.distinct[0].to_numpy()) == pytest.approx(10_000, abs=1500)
