from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.listing import below, below_uri, list_data
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build, write_data
from dbt_zorder.tables.parquet.changed_files import check_same_files
from dbt_zorder.tables.parquet.journal import ready_entries
from tests.support import unique
from tests.unit.tables.parquet.batches import folder as folder_of
from tests.unit.tables.parquet.batches import made, rows, same

NAMES = ["a.parquet", "path=1/b.parquet", "p=x%2F ü/q=[y]/c.parquet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "r x% ü" / "v1-unique"
    for name in [*NAMES, "_zorder_journal/b/data/d.parquet", "_SUCCESS", ".e.parquet.crc"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_files_are_listed_as_readers_see_them(spark: SparkSession, folder: Path) -> None:
    assert list_data(spark, f"file:{folder}") == {name: len(name.encode()) for name in NAMES}


def test_an_empty_folder_has_none(spark: SparkSession, tmp_path: Path) -> None:
    assert list_data(spark, f"file:{tmp_path}") == {}


def test_files_of_a_folder_with_any_name_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "my täble"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (folder / name).write_text(name)
    assert len(list_data(spark, f"file:{folder}")) == 2


def test_paths_count_from_the_folder_however_they_are_written() -> None:
    assert below("file:/x y/v1", "file:///x y/v1/p=1/f") == "p=1/f"
    assert below("/x/v1/", "hdfs://host/x/v1/f") == "f"
    assert below_uri("/x y/v1", "file:///x%20y/v1/p=a%252Fb/f%20g") == "p=a%2Fb/f g"


def test_a_change_is_noticed(spark: SparkSession, folder: Path) -> None:
    before = list_data(spark, str(folder))
    check_same_files(spark, str(folder), before, "d.t")
    (folder / "a.parquet").unlink()
    (folder / "new.parquet").write_text("x")
    with pytest.raises(BuildError, match=r"added 1 and removed 1 files of d\.t"):
        check_same_files(spark, str(folder), before, "d.t")


def test_a_build_gives_up_where_a_batch_comes_in_beside_it(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is served from the same place all the while, and the build may not have the batch's rows."""
    table = TableName(database, unique("watched"))
    wanted = made(spark, table, rows(0, 100))

    def meanwhile(*args: Any) -> None:
        write_data(*args)
        monkeypatch.setattr(build_module, "write_data", write_data)
        append(spark, spark.sql(rows(100, 120)), wanted)

    monkeypatch.setattr(build_module, "write_data", meanwhile)
    with pytest.raises(BuildError, match=r"Another run added 1 and removed 0 files"):
        build(spark, spark.sql(rows(0, 50)), wanted)
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))
    build(spark, spark.sql(rows(0, 50)), wanted)
    assert spark.table(table.sql).count() == 50


@pytest.mark.parametrize("left", ["a ready batch", "no files"])
def test_what_was_so_before_a_build_is_no_obstacle(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    table = TableName(database, unique("watched"))
    wanted = made(spark, table, rows(0, 100))
    if left == "no files":
        shutil.rmtree(folder_of(spark, table))
    else:
        with monkeypatch.context() as patched:
            patched.setattr(journal, "carry_out", fail)
            with pytest.raises(BuildError, match="safe in its journal"):
                append(spark, spark.sql(rows(100, 120)), wanted)
        info = describe(spark, table)
        assert info is not None
        assert ready_entries(spark, info.location)
    build(spark, spark.sql(rows(0, 50)), wanted)
    assert spark.table(table.sql).count() == 50


def fail(*_: object) -> None:
    msg = "injected"
    raise RuntimeError(msg)
