from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.stats import cache as module
from dbt_zorder.stats.cache import cached_stats
from dbt_zorder.stats.store import read_stats, write_stats

ROW = """
    SELECT 'a' AS file_path, 1 AS row_count, named_struct(
        't', timestamp'0001-01-01 00:00:00.000001', 'n', timestamp_ntz'9999-12-31 23:59:59.999999',
        'd', date'1582-10-10', 'm', 99999999999999999999999999999999999999bd,
        'f', double('NaN'), 'z', float('-0.0'), 's', 'ü\\0',
        'b', X'00ff', 'i', interval 1 day 2 microseconds, 'nothing', cast(null AS int), 'yes', true, 'y', -1Y
    ) AS columns
"""


def test_every_type_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    write_stats(spark.sql(ROW), str(tmp_path))
    local, lying = cached_stats(spark, str(tmp_path)), read_stats(spark, str(tmp_path))
    assert local is not None
    assert local.select("*").schema == lying.schema
    texts = [
        frame.selectExpr("to_json(struct(*))", "hex(columns.s)", "columns.z < 0", "1 / columns.z").collect()
        for frame in (local, lying)
    ]
    assert texts[0] == texts[1]
    assert local.unionByName(lying).distinct().count() == 1


def test_selecting_takes_no_job(spark: SparkSession, tmp_path: Path) -> None:
    write_stats(spark.sql(ROW), str(tmp_path))
    cached_stats(spark, str(tmp_path))
    group = "cached stats"
    context: Any = spark.sparkContext
    context.setJobGroup(group, group)
    jobs = []
    try:
        for stats in (cached_stats, read_stats):
            frame = stats(spark, str(tmp_path))
            assert frame is not None
            assert frame.selectExpr("row_count + 1").collect()[0][0] == 2
            context._jsc.sc().listenerBus().waitUntilEmpty()
            jobs.append(len(context.statusTracker().getJobIdsForGroup(group)))
    finally:
        context.setLocalProperty("spark.jobGroup.id", "")
    assert jobs[0] == 0
    assert jobs[1] > 0


def test_new_stats_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    for path in ("a", "b"):
        write_stats(spark.sql(f"SELECT '{path}' AS file_path"), str(tmp_path))
        local = cached_stats(spark, str(tmp_path))
        assert local is not None
        assert local.collect()[0][0] == path


def test_what_cannot_be_held_is_read_as_it_lies(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cached_stats(spark, str(tmp_path / "nothing")) is None
    write_stats(spark.sql("SELECT 'a' AS file_path, interval 1 year AS y"), str(tmp_path / "y"))
    assert cached_stats(spark, str(tmp_path / "y")) is None
    write_stats(spark.sql("SELECT 'a' AS file_path"), str(tmp_path / "large"))
    for bound in ("TABLE_BYTES", "FILE_BYTES"):
        write_stats(spark.sql("SELECT 'a' AS file_path"), str(tmp_path / "large"))
        with monkeypatch.context() as patch:
            patch.setattr(module, bound, 4)
            assert cached_stats(spark, str(tmp_path / "large")) is None
    assert cached_stats(spark, str(tmp_path / "large")) is not None


def test_a_refusal_is_remembered(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stats(spark.sql("SELECT 'a' AS file_path, interval 1 year AS y"), str(tmp_path))
    assert cached_stats(spark, str(tmp_path)) is None
    monkeypatch.setattr(module, "load_stats", lambda *_: pytest.fail("read again"))
    assert cached_stats(spark, str(tmp_path)) is None


def test_what_was_not_asked_for_longest_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [str(tmp_path / str(number)) for number in range(4)]
    for folder in folders:
        write_stats(spark.sql("SELECT 'a' AS file_path"), folder)
    monkeypatch.setattr(module, "_cache", OrderedDict())
    cached_stats(spark, folders[0])
    (_, _, size) = next(iter(module._cache.values()))
    monkeypatch.setattr(module, "ALL_BYTES", 2 * size)
    for number in (1, 0, 2, 3):
        cached_stats(spark, folders[number])
    assert [location for _, location in module._cache] == [folders[2], folders[3]]
