"""What is deleted of a folder that holds files which no build wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import files
from dbt_zorder.tables.parquet.retention.foreign_files import delete_around, sorted_out

OURS = [
    "part-00000-1b-c000.snappy.parquet",
    ".part-00000-1b-c000.snappy.parquet.crc",
    "000000_0",
    "_SUCCESS",
    "._SUCCESS.crc",
    "_metadata",
    "_zorder_replaced",
    "._zorder_replaced.0a._writing",
    "_zorder_version/part-00000.txt",
    "_zorder_stats/anything",
    "_temporary/0/x",
    "p=1/part-00000.parquet",
    "p=2/part-00000.parquet",
    "p=2/q=a%20b/part-00000.parquet",
]
FOREIGN = ["_notes.txt", "p=1/notes.txt", "sub/part-00000.parquet", "data.parquet", "_delta_log/0.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*OURS, *FOREIGN):
        path = tmp_path / "v" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "v"


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("here", [True, False])
def test_what_no_build_wrote_stays_with_its_folders(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, here: bool
) -> None:
    if not here:
        monkeypatch.setattr(files, "on_disk", lambda *_: None)
    ours, foreign = sorted_out(spark, str(folder))
    assert foreign == sorted(FOREIGN)
    assert set(ours) <= set(OURS)
    order: list[str] = []
    delete = files.delete_path
    with monkeypatch.context() as watched:

        def noted(session: SparkSession, path: str, *more: Any) -> None:
            order.append(path.removeprefix(f"{folder}/"))
            delete(session, path, *more)

        watched.setattr("dbt_zorder.tables.parquet.retention.foreign_files.delete_path", noted)
        delete_around(spark, str(folder), ours, foreign, last=("_zorder_version", "never"))
    assert left(folder) == sorted(FOREIGN)
    assert order[-1] == "_zorder_version"
    assert "p=2" in order
    assert f"{folder} is deleted but for 5 of its files" in caplog.text
    assert "_notes.txt" not in order


def test_the_log_of_another_format_is_of_its_table(spark: SparkSession, folder: Path) -> None:
    assert "_delta_log/0.json" in sorted_out(spark, str(folder), "delta")[0]


def test_a_link_to_elsewhere_is_foreign_and_a_missing_folder_holds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "sub").symlink_to(tmp_path)
    assert sorted_out(spark, str(tmp_path / "v")) == ([], ["sub"])
    assert sorted_out(spark, str(tmp_path / "never")) == ([], [])
