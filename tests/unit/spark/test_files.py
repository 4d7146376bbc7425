from __future__ import annotations

import contextlib
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import files as module
from dbt_zorder.spark.files import (
    delete_path,
    folders_with,
    has_client,
    list_files,
    list_folders,
    read_text,
    write_text,
)
from dbt_zorder.spark.local_disk import LocalPath, on_disk
from tests.unit.tables.parquet.systems import System, opened_as


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


def test_folders_that_hold_a_file_are_found_with_its_time(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "a [1] {2} %20"
    for name in ("one", "two", "three"):
        (root / name).mkdir(parents=True)
    for name in ("one", "three"):
        (root / name / "note").write_text("x")
        os.utime(root / name / "note", (1_700_000_000, 1_700_000_000))
    when = datetime.fromtimestamp(1_700_000_000, timezone.utc)
    assert folders_with(spark, str(root), "note") == {"one": when, "three": when}
    assert folders_with(spark, str(root), "note*") == {}
    assert folders_with(spark, str(tmp_path / "never"), "note") == {}


@pytest.mark.parametrize("odd", ["", "ü"])
def test_a_folder_is_listed_here_as_hadoop_lists_it(
    spark: SparkSession, tmp_path: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a%20", ".hidden", f"x{odd}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note").write_text("x")
    for name in ("data", ".data.crc", "_SUCCESS"):
        (tmp_path / name).write_text("x")
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    asked = (list_folders, list_files, partial(folders_with, name="note"))
    quick = [one(spark, str(tmp_path)) for one in asked]
    assert (module._entries_here(spark, str(tmp_path)) is None) is bool(odd)
    monkeypatch.setattr(module, "on_disk", nowhere)
    (tmp_path / "gone").unlink()  # Hadoop's client cannot list a folder with one
    assert quick == [one(spark, str(tmp_path)) for one in asked]


def nowhere(*_: Any) -> None:
    """Stands for a path on another machine."""


def test_a_text_takes_the_place_of_the_one_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"file:{tmp_path}/a [1] %20/ü/note"
    # as another file system would write it, and after that as this machine's does, and the other way round
    for text, where in (("one", nowhere), ("two", on_disk), ("drei ü", nowhere), ("", on_disk)):
        monkeypatch.setattr(module, "on_disk", where)
        write_text(spark, path, text)
        assert read_text(spark, path) == text
        assert [name for name in list_files(spark, str(tmp_path / "a [1] %20" / "ü")) if name[0] != "."] == ["note"]
    assert (tmp_path / "a [1] %20" / "ü" / "note").read_text() == ""


def test_a_text_that_cannot_be_written_leaves_the_one_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(spark, f"{tmp_path}/note", "kept")

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as opened:
            opened.write(content[:1])
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        write_text(spark, f"{tmp_path}/note", "new")
    assert read_text(spark, f"{tmp_path}/note") == "kept"
    assert [file.name for file in tmp_path.iterdir()] == ["note"]


def test_two_writers_of_one_text_do_not_meet(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["a" * 5000, "b" * 5000]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write_text(spark, f"{tmp_path}/note", texts[number % 2]), range(80)))
        assert read_text(spark, f"{tmp_path}/note") in texts
    assert [file.name for file in tmp_path.iterdir()] == ["note"]
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o644


def test_a_disk_that_only_the_jvm_sees_is_written_to_by_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda _: False)
    monkeypatch.setattr(module, "_write_here", lambda *_: pytest.fail("written here"))
    for text in ("text", "text again"):
        write_text(spark, f"{tmp_path}/new/note", text)
        assert read_text(spark, f"{tmp_path}/new/note") == text


def test_a_disk_that_only_this_process_sees_is_left_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is where the JVM runs in another container."""
    (tmp_path / "jvm").mkdir()
    elsewhere = LocalPath(f"{tmp_path}/here/new/deep/note", "", 0o022)
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(module, "on_disk", lambda *_: elsewhere)
    path = f"{tmp_path}/jvm/new/deep/note"
    with monkeypatch.context() as patched:
        patched.setattr(module, "_write_here", lambda *_: pytest.fail("written here"))
        write_text(spark, path, "text")
    assert list((tmp_path / "here").iterdir()) == []
    assert Path(path).read_text() == "text"


@pytest.mark.parametrize("name", ["new/deep/note", "ü/note"])
def test_folders_of_a_text_have_the_rights_that_hadoop_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o700)
    write_text(spark, f"{tmp_path}/{name}", "text")
    rights = [folder.stat().st_mode & 0o777 for folder in (tmp_path / name).parents if folder.is_relative_to(tmp_path)]
    assert rights == [0o755] * name.count("/") + [0o700]


class Refusing(System):
    """A file system that says by its answer alone that it cannot delete."""

    def delete(self, path: Any, recursive: bool) -> bool:
        return False


def test_what_cannot_be_deleted_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    opened_as(monkeypatch, Refusing)
    for last in ((), ("b",)):
        with pytest.raises(OSError, match="could not be deleted"):
            delete_path(spark, str(tmp_path), last)
    delete_path(spark, str(tmp_path / "never"))
    assert (tmp_path / "a").exists()


def test_entries_that_go_last_go_in_their_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / "v" / name).mkdir(parents=True)
    seen: list[str] = []
    real = module._delete

    def noted(system: Any, path: Any) -> None:
        seen.append(path.getName())
        real(system, path)

    monkeypatch.setattr(module, "_delete", noted)
    delete_path(spark, str(tmp_path / "v"), last=("b", "never", "a"))
    assert (sorted(seen[:2]), seen[2:]) == (["c", "d"], ["b", "a", "v"])
    assert not (tmp_path / "v").exists()


class Copying(System):
    """An object store, which copies and deletes to rename, and refuses to rename over what is there."""

    def rename(self, file: Any, place: Any) -> bool:
        if self.system.exists(place):
            raise FileExistsError(place.toString())
        return bool(self.system.rename(file, place))


def test_a_file_that_was_copied_and_not_deleted_is_moved_all_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    opened_as(monkeypatch, Copying)
    here.write_text("rows")
    there.write_text("rows")
    assert module.move(spark, str(here), str(there))
    assert (here.exists(), there.read_text()) == (False, "rows")
    here.write_text("others")
    with pytest.raises(FileExistsError):
        module.move(spark, str(here), str(there))
    assert (here.read_text(), there.read_text()) == ("others", "rows")


class Bucket(Copying):
    """One that has a file when it is closed."""

    def getUri(self) -> Bucket:  # noqa: N802
        return self

    def getScheme(self) -> str:  # noqa: N802
        return "s3a"

    def rename(self, file: Any, place: Any) -> bool:
        raise AssertionError


def test_a_text_is_put_into_an_object_store_by_one_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_as(monkeypatch, Bucket)
    monkeypatch.setattr(module, "on_disk", lambda *_: None)
    for text in ("first", "second"):
        module.write_text(spark, str(tmp_path / "note"), text)
        assert (tmp_path / "note").read_text() == text
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")] == ["note"]


class Raced(System):
    """A file system that raises where the source of a renaming is gone; others return false."""

    def __init__(self, system: Any, *, moved: bool) -> None:
        super().__init__(system)
        self.moved = moved

    def rename(self, file: Any, place: Any) -> bool:
        if self.moved:
            self.system.rename(file, place)
        raise FileNotFoundError(file.toString())


@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_another_process_moves_just_then_is_moved(
    spark: SparkSession, tmp_path: Path, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "folder" / "there"
    here.write_text("x")
    opened_as(monkeypatch, partial(Raced, moved=moved))
    with contextlib.nullcontext() if moved else pytest.raises(FileNotFoundError):
        assert not module.move(spark, str(here), str(there))
    assert (here.exists(), there.exists()) == (not moved, moved)
