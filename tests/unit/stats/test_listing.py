from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.stats import listing
from dbt_zorder.stats.listing import listed_files, local_file, lost_files


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
