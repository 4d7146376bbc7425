"""A batch on a store that renames by copy and deletion, and refuses to rename over a file, cut short at every step."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.stats.schema import STATS_DIRECTORY
from dbt_zorder.tables.parquet.journal import MovePlan, carry_out, leave_entry, make_ready, open_entry, recover_journal
from tests.unit.tables.parquet.systems import System, opened_as

PLAN = MovePlan(
    ["p=1/new.parquet", "p=2/new.parquet"], ["p=1/old.parquet", "p=2/old.parquet"], ["new.stats"], ["old.stats"]
)


class StruckError(Exception):
    """The process ends here."""


class Store(System):
    """This machine's disk as an object store, which fails from the n-th change on."""

    def __init__(self, system: Any, left: list[int]) -> None:
        super().__init__(system)
        self.left = left

    def change(self) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise StruckError

    def rename(self, file: Any, place: Any) -> bool:
        if self.system.exists(place):
            raise FileExistsError(place.toString())
        self.change()
        shutil.copy(file.toUri().getPath(), place.toUri().getPath())
        self.change()
        return bool(self.system.delete(file, False))

    def delete(self, path: Any, recursive: bool) -> bool:
        if self.system.exists(path):
            self.change()
        return bool(self.system.delete(path, recursive))


def begin(spark: SparkSession, root: Path) -> Any:
    for name in ("p=1/old.parquet", "p=2/old.parquet", f"{STATS_DIRECTORY}/old.stats"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    entry = open_entry(spark, str(root))
    for name in PLAN.adds:
        file = Path(entry.data) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"the new {name}")
    stats = Path(entry.path) / STATS_DIRECTORY / "new.stats"
    stats.parent.mkdir(parents=True)
    stats.write_text("of new files")
    make_ready(spark, entry, PLAN)
    return entry


def content(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    return {str(path.relative_to(root)): path.read_text() for path in files}


def test_what_is_cut_short_at_any_step_the_next_run_completes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [0]
    opened_as(monkeypatch, partial(Store, left=left))
    steps = 0
    while True:
        root = tmp_path / str(steps)
        entry = begin(spark, root)
        left[0] = steps
        try:
            carry_out(spark, entry, PLAN)
            break
        except StruckError:
            leave_entry(entry)
        left[0] = 1_000
        recover_journal(spark, str(root))
        assert content(root) == {
            "p=1/new.parquet": "the new p=1/new.parquet",
            "p=2/new.parquet": "the new p=2/new.parquet",
            f"{STATS_DIRECTORY}/new.stats": "of new files",
        }, steps
        steps += 1
    assert steps >= 12  # two of each of five files, the stats that are replaced, and what the entry was
