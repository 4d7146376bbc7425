from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt_zorder.stats import listing
from dbt_zorder.stats.listing import data_files, listed_files, local_file, lost_files
from tests.support import settings


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> dict[str, int]:
    for name, text in (("a b.parquet", "one"), ("p=ü%/c.parquet", "three")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return {row[0]: row[1] for row in listed_files(spark, str(tmp_path)).collect()}


def test_local_files_are_looked_at_without_a_job(
    spark: SparkSession, tmp_path: Path, files: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(files.values()) == [3, 5]
    monkeypatch.setattr(listing, "listed_files", lambda *_: pytest.fail("listed"))
    assert lost_files(spark, str(tmp_path), files) == []


def test_what_is_gone_or_of_another_size_is_lost(spark: SparkSession, tmp_path: Path, files: dict[str, int]) -> None:
    gone, cut = files
    Path(local_file(gone) or "").unlink()
    Path(local_file(cut) or "").write_text("x")
    assert lost_files(spark, str(tmp_path), files) == [gone, cut]


def test_files_that_only_spark_sees_are_not_lost(
    spark: SparkSession, tmp_path: Path, files: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "local_file", lambda _: None)
    assert lost_files(spark, str(tmp_path), files) == []
    assert lost_files(spark, str(tmp_path), {**files, "file:/never": 1}) == ["file:/never"]


SHOWN = [
    "plain-00000.c000.snappy.parquet",
    "p=1/q=a b%2F/_=x/f.parquet",
    "_p=1/f ;:@&=+$,!*'()~-_.parquet",
    'p=[x]{y}#?"<>^`|/f.parquet',
    "_metadata.d/f.parquet",
    "_common_metadata/f.parquet",
    "p=1/a=_x",
]
HIDDEN = [
    "_SUCCESS",
    "_metadata",
    ".f.crc",
    "_hidden/f.parquet",
    ".x/f.parquet",
    "f._COPYING_",
    "d._COPYING_/f.parquet",
]


def make(root: Path, names: list[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def by_spark(spark: SparkSession, location: str) -> dict[str, int]:
    return {row[0]: row[1] for row in listed_files(spark, location).collect()}


@pytest.mark.parametrize("root", ["v1", "a b %20[x] ü"])
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_disk_is_listed_as_spark_lists_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, prefix: str
) -> None:
    folder = tmp_path / root
    make(folder, [*SHOWN, *HIDDEN])
    (folder / "empty.parquet").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.parquet").write_text("x")
    (folder / "p=2").symlink_to(tmp_path / "elsewhere")
    location = f"{prefix}{folder}/"
    wanted = by_spark(spark, location)
    assert len(wanted) == len(SHOWN) + 1
    with monkeypatch.context() as patched:
        patched.setattr(listing, "listed_files", lambda *_: pytest.fail("Spark was asked"))
        assert data_files(spark, location) == wanted
    make(folder, ["p=ü/f.parquet"])
    assert data_files(spark, location) == by_spark(spark, location)
    assert len(data_files(spark, location)) == len(wanted) + 1


def test_a_folder_that_is_not_there_is_sparks_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException):
        data_files(spark, str(tmp_path / "never"))
    assert data_files(spark, str(tmp_path)) == {}


def test_elsewhere_spark_lists(
    spark: SparkSession, tmp_path: Path, files: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "on_disk", lambda *_: None)
    monkeypatch.setattr(listing, "_walked", lambda *_: pytest.fail("walked"))
    assert data_files(spark, str(tmp_path)) == files


@pytest.mark.parametrize("key", ["spark.sql.files.ignoredPathSegmentRegex", "mapreduce.input.pathFilter.class"])
def test_where_spark_is_told_what_to_pass_over_it_lists(
    spark: SparkSession, tmp_path: Path, files: dict[str, int], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(listing, "_walked", lambda *_: {})
    monkeypatch.setattr(listing, "listed_files", lambda *_: spark.createDataFrame([("listed", 1)]))
    assert data_files(spark, str(tmp_path)) == {}
    with settings(spark, {key: "[.]x"}):
        assert data_files(spark, str(tmp_path)) == {"listed": 1}
