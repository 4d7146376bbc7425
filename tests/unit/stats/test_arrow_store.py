from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats import arrow_store as local
from dbt_zorder.stats.arrow_store import LocalStats, read_local, write_local
from dbt_zorder.stats.footer_schema import SCHEMA_KEY
from dbt_zorder.stats.footers import footer_stats
from dbt_zorder.stats.schema import stats_schema
from dbt_zorder.stats.store import load_stats, read_stats, stats_path, write_stats
from tests.support import settings
from tests.unit.stats.test_footers import DATA, EXACT, wrote


def stats_of(spark: SparkSession, folder: Path) -> LocalStats:
    """Of four files with every type that footers tell."""
    frame = spark.sql(DATA)
    columns = resolve_all([*EXACT, "s.x.`y z`", "a.b"], frame.schema)
    found = footer_stats(spark, wrote(frame, folder), columns, "v1")
    assert found is not None
    return found


def few(spark: SparkSession) -> LocalStats:
    schema = stats_schema({})
    rows = {"file_path": ["b", "a"], "file_size": [1, 2], "row_count": [3, 4], "version": ["v", "v"]}
    return LocalStats(spark, pa.table({**rows, "columns": [{"n": 1}, {"n": 1}]}), schema)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_file_that_arrow_writes_reads_as_one_that_spark_writes(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        stats = stats_of(spark, tmp_path / "p=1" / "a [b] ü%20")
        by_arrow, by_spark = str(tmp_path / "p=1" / "a [b] ü%20"), str(tmp_path / "spark")
        written = write_stats(stats, by_arrow)
        assert isinstance(written, LocalStats)
        write_stats(stats.frame(), by_spark)
        (file,) = Path(stats_path(by_arrow)).iterdir()
        assert file.stat().st_mode & 0o777 == 0o644
        assert "arrow" in pq.read_metadata(file).created_by
        read = read_stats(spark, by_arrow)
        assert read.schema == read_stats(spark, by_spark).schema == stats.schema == written.schema
        rows = read.collect()
        assert rows == read_stats(spark, by_spark).collect() == written.frame().collect()
        assert [row.file_path for row in rows] == sorted(row.file_path for row in rows)
        assert sum(row.row_count for row in rows) == 20000
        # both in one folder, as in a version whose batches were written in different ways
        low = "`columns`.`d9`.`min_value`"
        both = spark.read.parquet(stats_path(by_arrow).replace("[", "\\["), stats_path(by_spark))
        assert both.where(f"{low} < 0").count() == 2 * read.where(f"{low} < 0").count() > 0


def test_spark_finds_its_own_schema_in_the_file(spark: SparkSession, tmp_path: Path) -> None:
    write_stats(stats_of(spark, tmp_path / "t"), str(tmp_path / "t"))
    (file,) = Path(stats_path(str(tmp_path / "t"))).iterdir()
    metadata = pq.read_metadata(file).metadata
    assert metadata[b"org.apache.spark.version"].decode() == spark.version
    assert json.loads(metadata[b"org.apache.spark.sql.parquet.row.metadata"])["fields"][0]["name"] == "file_path"


def test_no_rows_are_stats_too(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0).toDF("id")
    stats = footer_stats(spark, wrote(frame, tmp_path / "t"), resolve_all(["id"], frame.schema), "v1")
    assert stats is not None
    written = write_stats(stats, str(tmp_path / "t"))
    assert isinstance(written, LocalStats)
    assert written.frame().collect() == []
    assert read_stats(spark, str(tmp_path / "t")).schema == stats.schema


@pytest.mark.parametrize(("prefix", "here"), [("", True), ("file:", True), ("file://", True), ("file://host", False)])
def test_only_a_folder_of_this_machine_is_written_to(
    spark: SparkSession, tmp_path: Path, prefix: str, here: bool
) -> None:
    written = write_local(few(spark), f"{prefix}{tmp_path}/s")
    assert (written is not None) is here
    assert (tmp_path / "s").exists() is here
    if written is not None:
        assert written.rows["file_path"].to_pylist() == ["a", "b"]
    assert write_local(few(spark), "s3a://bucket/s") is None


def test_over_connect_the_server_writes(spark: SparkSession, tmp_path: Path) -> None:
    class Remote:
        version = spark.version

    remote: Any = Remote()
    assert write_local(replace(few(spark), spark=remote), str(tmp_path / "s")) is None
    assert not (tmp_path / "s").exists()


def test_what_arrow_cannot_write_spark_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = stats_of(spark, tmp_path / "t")

    def fails(_: pa.Table, file: str) -> None:
        Path(file).write_bytes(b"PAR1")
        raise OSError

    monkeypatch.setattr(pq, "write_table", fails)
    assert write_local(stats, str(tmp_path / "s")) is None
    assert not (tmp_path / "s").exists()
    written = write_stats(stats, str(tmp_path / "t"))
    assert isinstance(written, DataFrame)
    assert (
        read_stats(spark, str(tmp_path / "t")).collect()
        == written.collect()
        == stats.frame().sort("file_path").collect()
    )
    assert written.count() == 4


def test_stats_that_are_there_already_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    stats = stats_of(spark, tmp_path / "t")
    for rows in (stats.rows, stats.rows[:1]):
        write_stats(replace(stats, rows=rows), str(tmp_path / "t"))
    assert read_stats(spark, str(tmp_path / "t")).count() == 1


def test_what_arrow_wrote_is_read_by_it(spark: SparkSession, tmp_path: Path) -> None:
    stats = stats_of(spark, tmp_path / "t")
    for number in range(4):
        (tmp_path / f"{number}").mkdir()
        write_stats(replace(stats, rows=stats.rows[number : number + 1]), str(tmp_path / f"{number}"))
    folder = Path(stats_path(str(tmp_path / "0")))
    for number in range(1, 4):
        (file,) = Path(stats_path(str(tmp_path / f"{number}"))).glob("part-*")
        file.rename(folder / file.name)
    (folder / "_SUCCESS").touch()
    found = read_local(spark, f"file:{folder}")
    assert found is not None
    assert found.schema == stats.schema
    assert sorted(found.frame().collect()) == sorted(stats.frame().collect())
    assert load_stats(spark, str(tmp_path / "0")).schema == read_stats(spark, str(tmp_path / "0")).schema


def _by_spark(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    stats.frame().write.mode("append").parquet(str(folder))


def _of_others(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    other = stats_schema({"other": stats.schema["row_count"].dataType})
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({SCHEMA_KEY: other.json()}), folder / "o.parquet")


def _without_schema(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    next(folder.iterdir()).unlink()
    pq.write_table(stats.rows, folder / "s.parquet")


def _odd_schema(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    next(folder.iterdir()).unlink()
    pq.write_table(stats.rows.replace_schema_metadata({SCHEMA_KEY: "{}"}), folder / "s.parquet")


def _garbage(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    next(folder.iterdir()).write_bytes(b"x" * 500)


def _gone(spark: SparkSession, stats: LocalStats, folder: Path) -> None:
    next(folder.iterdir()).unlink()


@pytest.mark.parametrize("spoil", [_by_spark, _of_others, _without_schema, _odd_schema, _garbage, _gone])
def test_what_is_not_arrows_alone_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[SparkSession, LocalStats, Path], None]
) -> None:
    stats = stats_of(spark, tmp_path / "t")
    write_stats(stats, str(tmp_path / "t"))
    folder = Path(stats_path(str(tmp_path / "t")))
    assert read_local(spark, str(folder)) is not None
    spoil(spark, stats, folder)
    assert read_local(spark, str(folder)) is None


def test_large_stats_and_none_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stats(stats_of(spark, tmp_path / "t"), str(tmp_path / "t"))
    for bound in ("MOST_BYTES", "MOST_VALUES"):
        assert read_local(spark, stats_path(str(tmp_path / "t"))) is not None
        with monkeypatch.context() as patched:
            patched.setattr(local, bound, 100)
            assert read_local(spark, stats_path(str(tmp_path / "t"))) is None
    monkeypatch.setattr(local, "MOST_BYTES", 100)
    assert isinstance(load_stats(spark, str(tmp_path / "t")), DataFrame)
    assert read_local(spark, str(tmp_path / "never")) is None
