from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout import small
from dbt_zorder.layout.plan import LayoutSpec, plan_layout
from dbt_zorder.layout.sample import draw, fetch_keys
from tests.unit.layout.frames import mixed
from tests.unit.layout.test_sample import ONE, keys


def test_an_estimate_of_a_scan_is_the_bytes_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1000).coalesce(1).write.mode("overwrite").parquet(str(tmp_path))
    size = sum(file.stat().st_size for file in tmp_path.glob("*.parquet"))
    scan = spark.read.parquet(str(tmp_path))
    assert small.estimated_bytes(scan) == size
    assert small.estimated_bytes(scan.where("id % 7 = 0")) == size
    assert (small.estimated_bytes(scan.crossJoin(scan.toDF("other"))) or 0) > 100 * size


def test_few_rows_are_fetched_and_many_are_not(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.range(0, 100, 1, 4)
    fetched = small.fetch_few(rows, 8)
    assert fetched is not None
    assert fetched.column_names == ["id"]
    assert sorted(fetched["id"].to_pylist()) == list(range(100))
    monkeypatch.setattr(small, "_MOST_BYTES", 800)
    assert small.fetch_few(rows.limit(99), 8) is not None
    assert small.fetch_few(rows, 8) is None
    monkeypatch.setattr(small, "_MOST_BYTES", 8 * 24)
    assert small.fetch_few(rows, 8) is None, "each of the four tasks has cut one row"


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


def test_keys_of_text_are_not_taken_for_many_by_how_long_they_might_be(spark: SparkSession) -> None:
    frame = spark.sql("SELECT string(id) AS a, string(-id) AS b, string(id * 3) AS c FROM range(200000)")
    fetched = fetch_keys(frame, keys(frame, "a", "b", "c"), None)
    assert fetched is not None
    assert fetched.num_rows == 200_000


def test_a_part_of_what_was_fetched_is_drawn_by_the_seed(spark: SparkSession) -> None:
    frame = spark.range(20_000)
    by = keys(frame, "id")
    fetched = fetch_keys(frame, by, None)
    assert fetched is not None
    one, again, other = (draw(frame, by, 1000, 20_000, seed, None, ONE, fetched) for seed in (-3, -3, 4))
    assert one.distinct[0].equals(again.distinct[0])
    assert not one.distinct[0].equals(other.distinct[0])
    assert len(one.ranks) == 1000
    assert np.median(one.distinct[0].to_numpy()) == pytest.approx(10_000, abs=1500)
