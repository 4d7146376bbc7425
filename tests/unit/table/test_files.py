from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from dbt_zorder.table.files import delete_path, has_client, is_empty, list_folders


def test_folders_are_listed_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    assert has_client(spark)
    (tmp_path / "b" / "inner").mkdir(parents=True)
    (tmp_path / "a [1] %20").mkdir()
    (tmp_path / "file").write_text("x")
    assert list_folders(spark, str(tmp_path)) == ["a [1] %20", "b"]
    delete_path(spark, str(tmp_path / "b"))
    delete_path(spark, str(tmp_path / "never"))
    assert list_folders(spark, str(tmp_path)) == ["a [1] %20"]
    assert list_folders(spark, str(tmp_path / "never")) == []


def test_empty_is_empty_or_missing(spark: SparkSession, tmp_path: Path) -> None:
    assert is_empty(spark, str(tmp_path))
    assert is_empty(spark, str(tmp_path / "never"))
    (tmp_path / "x").mkdir()
    assert not is_empty(spark, str(tmp_path))
