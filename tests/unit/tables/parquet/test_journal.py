from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.journal import (
    JournalEntry,
    MovePlan,
    carry_out,
    leave_entry,
    make_ready,
    open_entry,
    ready_entries,
    recover_journal,
)
from tests.unit.snapshots import Tree, tree

LONG_AGO = "b20200101T000000000-0123abcd"


def staged(spark: SparkSession, root: Path, *files: str) -> JournalEntry:
    """An entry with some files, opened by this process, which does not work on it any more."""
    entry = open_entry(spark, f"file:{root}")
    for name in files:
        path = Path(entry.data.removeprefix("file:")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    leave_entry(entry)
    return entry


def place(entry: JournalEntry) -> Path:
    return Path(entry.path.removeprefix("file:"))


def test_an_entry_that_is_not_ready_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    entry = staged(spark, tmp_path, "x.parquet")
    assert place(entry).exists()
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 1)
    assert list(tmp_path.iterdir()) == []
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 0)


def test_one_that_a_thread_is_at_work_on_is_left(spark: SparkSession, tmp_path: Path) -> None:
    entry = open_entry(spark, f"file:{tmp_path}")
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 0)
    leave_entry(entry)
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 1)


@pytest.mark.parametrize("name", ["not ours", "b2020-0123abcd", LONG_AGO + "0"])
def test_what_is_not_named_like_an_entry_is_never_touched(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / journal.JOURNAL_DIRECTORY / name).mkdir(parents=True)
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 0)
    assert (tmp_path / journal.JOURNAL_DIRECTORY / name).exists()


def owned(spark: SparkSession, root: Path, owner: str) -> JournalEntry:
    entry = staged(spark, root, "x.parquet")
    (place(entry) / "owner.json").unlink()
    for leftover in place(entry).glob(".owner.json*.crc"):
        leftover.unlink()
    (place(entry) / "owner.json").write_text(owner)
    return entry


def test_one_of_a_living_process_is_left_and_one_of_a_dead_one_goes(spark: SparkSession, tmp_path: Path) -> None:
    host = json.loads((place(staged(spark, tmp_path / "a")) / "owner.json").read_text())["host"]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = json.dumps({"host": host, "pid": process.pid})
        owned(spark, tmp_path / "b", owner)
        assert recover_journal(spark, f"file:{tmp_path / 'b'}") == (0, 0)
        process.communicate(b"\n")
    assert recover_journal(spark, f"file:{tmp_path / 'b'}") == (0, 1)
    elsewhere = owned(spark, tmp_path / "c", json.dumps({"host": "elsewhere", "pid": os.getpid()}))
    assert recover_journal(spark, f"file:{tmp_path / 'c'}") == (0, 0)
    place(elsewhere).rename(place(elsewhere).with_name(LONG_AGO))
    assert recover_journal(spark, f"file:{tmp_path / 'c'}") == (0, 1)
    opening = owned(spark, tmp_path / "d", "no json")
    assert recover_journal(spark, f"file:{tmp_path / 'd'}") == (0, 0), "it may be just begun"
    place(opening).rename(place(opening).with_name(LONG_AGO))
    assert recover_journal(spark, f"file:{tmp_path / 'd'}") == (0, 1)


def test_what_is_ready_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    entry = staged(spark, tmp_path, "new.parquet")
    assert ready_entries(spark, f"file:{tmp_path}") == []
    make_ready(spark, entry, MovePlan(["new.parquet"], [], [], []))
    assert [found.name for found in ready_entries(spark, f"file:{tmp_path}")] == [entry.name]


def test_nothing_is_moved_out_for_a_batch_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old.parquet").write_text("old")
    entry = staged(spark, tmp_path, "new.parquet")
    plan = MovePlan(["new.parquet", "lost.parquet"], ["old.parquet"], [], [])
    make_ready(spark, entry, plan)
    with pytest.raises(OSError, match=r"1 files of the batch are neither .* lost\.parquet"):
        carry_out(spark, entry, plan)
    assert (tmp_path / "old.parquet").read_text() == "old"


def test_a_ready_entry_is_carried_out_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "old.parquet").write_text("old")
    (tmp_path / "p=1" / "of somebody else").write_text("kept")
    entry = staged(spark, tmp_path, "p=1/new.parquet", "p=%7B x/new.parquet")
    plan = MovePlan(["p=1/new.parquet", "p=%7B x/new.parquet"], ["p=1/old.parquet"], [], [])
    make_ready(spark, entry, plan)
    assert (tmp_path / "p=1" / "old.parquet").exists(), "nothing moved yet"
    assert recover_journal(spark, f"file:{tmp_path}") == (1, 0)
    assert sorted(path.name for path in (tmp_path / "p=1").iterdir()) == ["new.parquet", "of somebody else"]
    assert (tmp_path / "p=%7B x" / "new.parquet").read_text() == "p=%7B x/new.parquet"
    assert not (tmp_path / journal.JOURNAL_DIRECTORY).exists()
    carry_out(spark, entry, plan)
    assert sorted(path.name for path in (tmp_path / "p=1").iterdir()) == ["new.parquet", "of somebody else"]


def test_entries_are_carried_out_in_order(spark: SparkSession, tmp_path: Path) -> None:
    first = staged(spark, tmp_path, "a.parquet")
    make_ready(spark, first, MovePlan(["a.parquet"], [], [], []))
    second = staged(spark, tmp_path, "b.parquet")
    make_ready(spark, second, MovePlan(["b.parquet"], ["a.parquet"], [], []))
    assert recover_journal(spark, f"file:{tmp_path}") == (2, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["b.parquet"]


def test_a_plan_of_another_release_is_an_error_and_nothing_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    entry = staged(spark, tmp_path, "a.parquet")
    make_ready(spark, entry, MovePlan(["a.parquet"], [], [], [], format=99))
    with pytest.raises(ZorderError, match="is of format 99, and this release of dbt-zorder knows 1"):
        recover_journal(spark, f"file:{tmp_path}")
    assert (place(entry) / f"data-{entry.name}" / "a.parquet").exists()


def test_an_entry_cut_short_while_it_was_deleted_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    entry = staged(spark, tmp_path)
    (place(entry) / "owner.json").unlink()
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 0), "it may be just begun"
    place(entry).rename(place(entry).with_name(LONG_AGO))
    assert recover_journal(spark, f"file:{tmp_path}") == (0, 1)


OUT: list[Any] = [
    "../victim.parquet", "p=1/../../victim.parquet", "/victim.parquet", "file:/victim.parquet/..",
    "%2e%2e/victim.parquet", "%252e%252e/victim.parquet", "..\\victim.parquet",
    "", ".", "..", "a//b", "a\x00b", "link/victim.parquet",
    "_zorder_version/part-0.txt", None, 1, True, ["a"], {"a": 1},
]  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"adds": "a"}, {"removes": None}, {"stats_adds": {"a": 1}}, {"stats_removes": 1}, {"more": []}, {"format": "1"},
    {"format": None}, {"format": [1]},
]  # fmt: skip
NO_PLANS: list[Any] = [
    "", "not json", "[" * 100_000, "null", "1", "[]", "{}", {"format": 1}, {"format": 1, "adds": []},
    *({"adds": [], "removes": [], "stats_adds": [], "stats_removes": [], "format": 1, **more} for more in WRONG),
]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A version with a file, beside one of somebody else's, to which a folder in the version leads."""
    version = tmp_path / "w" / "t__zorder" / "v20240101T000000000-0123abcd"
    for file in (version / "x.parquet", version / "_zorder_stats" / "s.stats", tmp_path / "w" / "victim.parquet"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    (version.parent / "victim.parquet").write_text("victim")
    (version / "link").symlink_to(tmp_path / "w", target_is_directory=True)
    return version


@pytest.mark.parametrize("key", ["adds", "removes", "stats_adds", "stats_removes"])
def test_a_plan_that_leads_out_of_its_table_is_refused_whole(spark: SparkSession, table: Path, key: str) -> None:
    before: Tree = {}
    for path in OUT:
        entry = staged(spark, table, "new.parquet")
        plan = {"adds": ["new.parquet"], "removes": ["x.parquet"], "stats_adds": [], "stats_removes": ["s.stats"]}
        plan[key] = [*plan[key], path]
        (place(entry) / "plan.json").write_text(json.dumps({**plan, "format": 1}))
        before = tree(table.parents[1])
        with pytest.raises(ZorderError, match=rf"{entry.name} has a plan\.json that no batch .* Nothing was moved"):
            recover_journal(spark, f"file:{table}")
        assert tree(table.parents[1]) == before, path
        shutil.rmtree(place(entry))


def test_what_is_no_plan_is_refused(spark: SparkSession, table: Path) -> None:
    for found in NO_PLANS:
        entry = staged(spark, table, "new.parquet")
        (place(entry) / "plan.json").write_text(found if isinstance(found, str) else json.dumps(found))
        before = tree(table.parents[1])
        with pytest.raises(ZorderError, match=rf"journal entry .*{entry.name} "):
            recover_journal(spark, f"file:{table}")
        assert tree(table.parents[1]) == before, found
        shutil.rmtree(place(entry))


def test_no_plan_is_made_ready_that_would_be_refused(spark: SparkSession, table: Path) -> None:
    entry = staged(spark, table, "new.parquet")
    for adds, removes in (([], ["../victim.parquet"]), (["link/x"], []), (["a\\b"], [])):
        with pytest.raises(ZorderError, match=r"Nothing was moved or deleted\."):
            make_ready(spark, entry, MovePlan(adds, removes, [], []))
    assert not (place(entry) / "plan.json").exists()


@pytest.mark.parametrize("folder", ["", "old", "data-{}", "_zorder_stats"])
def test_an_entry_that_is_elsewhere_by_a_link_is_refused(spark: SparkSession, table: Path, folder: str) -> None:
    entry = staged(spark, table, "new.parquet", "../_zorder_stats/s.stats")
    make_ready(spark, entry, MovePlan(["new.parquet"], ["x.parquet"], [], []))
    elsewhere = table.parents[1] / "elsewhere"
    linked = place(entry) / folder.format(entry.name)
    if linked.exists():
        linked.rename(elsewhere)
    else:
        elsewhere.mkdir()
    linked.symlink_to(elsewhere, target_is_directory=True)
    before = tree(table.parents[1])
    with pytest.raises(ZorderError, match="is a link to another folder"):
        recover_journal(spark, f"file:{table}")
    assert tree(table.parents[1]) == before


@pytest.mark.parametrize(
    "owner", [[], "x", 1, {"host": 1}, *({"pid": pid} for pid in (None, "1", 0, -1, True, 1 << 80, [1])), "[" * 100_000]
)
def test_an_owner_that_is_none_is_as_none(spark: SparkSession, tmp_path: Path, owner: Any) -> None:
    host = json.loads((place(staged(spark, tmp_path / "a")) / "owner.json").read_text())["host"]
    text = (
        owner if isinstance(owner, str) else json.dumps({"host": host, **owner} if isinstance(owner, dict) else owner)
    )
    entry = owned(spark, tmp_path / "b", text)
    place(entry).rename(place(entry).with_name(LONG_AGO))
    assert recover_journal(spark, f"file:{tmp_path / 'b'}") == (0, 1)
