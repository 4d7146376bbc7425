from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import files
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import delete_path
from dbt_zorder.tables import version
from dbt_zorder.tables.parquet.retention import deletions as collect
from dbt_zorder.tables.parquet.retention.deletions import collect_old, delete_version, plan_deletions
from dbt_zorder.tables.parquet.retention.ownership import Owner, served_owner
from dbt_zorder.tables.parquet.retention.replacements import NOTE, forget_replaced, note_replaced
from dbt_zorder.tables.parquet.retention.tombstone import raise_tombstone
from dbt_zorder.tables.version import Marker, read_marker, write_marker

NOW = datetime.now(timezone.utc)


def name(number: int) -> str:
    return f"v20240101T00000000{number}-0123abcd"


def marker(number: int, base: int | None = None, hours: float = 0) -> Marker:
    made = (NOW - timedelta(hours=hours)).isoformat()
    return Marker(name(number), "default.t", "" if base is None else name(base), made, ["a"])


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def owner(spark: SparkSession, root: Path) -> Owner:
    return served_owner(spark, TableName("default", "t"), str(root / name(4)))


def replaced(spark: SparkSession, root: Path, number: int, hours: float) -> None:
    note_replaced(spark, str(root / name(number)), name(number + 1))
    when = (NOW - timedelta(hours=hours)).timestamp()
    os.utime(root / name(number) / NOTE, (when, when))


@pytest.fixture
def chain(spark: SparkSession, tmp_path: Path) -> Path:
    """Versions 0 to 4, each built upon the one before; they were replaced 30, 20, 10 and 0 hours ago."""
    for number in range(5):
        base = number - 1 if number else None
        write_marker(spark, str(tmp_path / name(number)), marker(number, base, 99))
    for number in range(4):
        replaced(spark, tmp_path, number, 30 - 10 * number)
    return tmp_path


@pytest.mark.parametrize(
    ("keep", "grace", "kept"),
    [
        (2, 0, [2, 3, 4]),
        (0, 0, [4]),
        (9, 0, [0, 1, 2, 3, 4]),
        (0, 24, [1, 2, 3, 4]),
        (0, 15, [2, 3, 4]),
        (0, 35, [0, 1, 2, 3, 4]),
        (3, 24, [1, 2, 3, 4]),
    ],
)
def test_only_what_is_beyond_the_number_and_the_grace_is_deleted(
    spark: SparkSession, chain: Path, keep: int, grace: float, kept: list[int]
) -> None:
    gone = collect_old(spark, str(chain), name(4), keep, grace)
    assert left(chain) == [name(number) for number in kept]
    assert sorted(gone) == [name(number) for number in range(5) if number not in kept]


def test_versions_in_their_grace_period_are_not_even_opened(
    spark: SparkSession, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reading(spark: SparkSession, path: str, *, dying: bool = False) -> Marker | None:
        read.append(path.rsplit("/", 1)[-1])
        return read_marker(spark, path, dying=dying)

    monkeypatch.setattr(collect, "read_marker", reading)
    monkeypatch.setattr(version, "read_marker", reading)
    assert collect_old(spark, str(chain), name(4), 0, 31) == []
    assert read == [name(4)]
    write_marker(spark, str(chain / name(5)), marker(5, 4))  # by a run that was killed: its grace period begins now
    assert collect_old(spark, str(chain), name(4), 0, 31) == []
    assert len(read) > 5
    assert (chain / name(5) / NOTE).exists()


def test_the_version_that_is_served_is_never_deleted_even_when_it_is_the_oldest(
    spark: SparkSession, chain: Path
) -> None:
    collect_old(spark, str(chain), name(0), 0, 0)
    assert name(0) in left(chain)


def test_what_is_not_ours_is_never_deleted(spark: SparkSession, chain: Path) -> None:
    for other in ("data", "v1", "v20240101T000000009-0123ABCD"):
        (chain / other).mkdir()
    (chain / name(7)).mkdir()  # no marker
    write_marker(spark, str(chain / name(8)), marker(1))  # the marker of another version: a copy
    (chain / "file").write_text("x")
    collect_old(spark, str(chain), name(4), 0, 0)
    assert left(chain) == sorted(["data", "file", "v1", "v20240101T000000009-0123ABCD", name(4), name(7), name(8)])


def test_a_root_that_is_not_there_is_fine(spark: SparkSession, tmp_path: Path) -> None:
    assert collect_old(spark, str(tmp_path / "never"), name(1), 0, 0) == []


def test_grace_counts_from_the_replacement_however_long_the_build_took(spark: SparkSession, chain: Path) -> None:
    for number in (1, 2):
        forget_replaced(spark, str(chain / name(number)))
    note_replaced(spark, str(chain / name(1)), name(2))
    assert collect_old(spark, str(chain), name(4), 0, 1) == [name(0)]
    # nobody noted when 2 was replaced, so the first collection did
    assert (chain / name(2) / NOTE).exists()


def test_what_a_failed_build_left_takes_no_place_of_a_version_that_was_served(spark: SparkSession, chain: Path) -> None:
    shutil.rmtree(chain / name(3))
    write_marker(spark, str(chain / name(3)), marker(3, 2))  # began upon 2 and was never served
    kept = marker(4, 2)
    write_marker(spark, str(chain / name(4)), kept, renew=True)
    assert collect_old(spark, str(chain), name(4), 2, 0) == [name(3), name(0)]


def test_a_build_spares_what_may_still_be_being_built(spark: SparkSession, chain: Path) -> None:
    write_marker(spark, str(chain / name(6)), marker(6, 4))
    collect_old(spark, str(chain), name(4), 0, 0)
    assert left(chain) == [name(4), name(6)]


def test_a_dry_run_notes_nothing(spark: SparkSession, chain: Path) -> None:
    forget_replaced(spark, str(chain / name(0)))
    decisions = plan_deletions(spark, owner(spark, chain), [str(chain)], 0, 0, note=False)
    assert [one.version for one in decisions if one.delete] == [name(number) for number in (3, 2, 1, 0)]
    assert not (chain / name(0) / NOTE).exists()


def test_what_any_table_is_served_from_stays(spark: SparkSession, chain: Path) -> None:
    spark.sql(f"CREATE TABLE default.renamed_by_sql (a int) USING parquet LOCATION '{chain / name(1)}'")
    try:
        assert collect_old(spark, str(chain), name(4), 0, 0) == [name(3), name(2), name(0)]
    finally:
        spark.sql("DROP TABLE default.renamed_by_sql")


def test_a_deletion_that_is_cut_short_can_go_on(
    spark: SparkSession, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (chain / name(0) / "part-0.parquet").write_text("x")
    (chain / name(0) / "sub").mkdir()
    delete = files.delete_path
    monkeypatch.setattr(collect, "delete_path", lambda spark, path, last: delete(spark, f"{path}/part-0.parquet"))
    delete_version(spark, str(chain / name(0)))
    assert not (chain / name(0) / "part-0.parquet").exists()
    assert (chain / name(0) / "_zorder_version").exists()
    monkeypatch.undo()
    assert name(0) in collect_old(spark, str(chain), name(4), 0, 0)
    assert left(chain) == [name(4)]


@pytest.mark.parametrize("gone", ["_zorder_version", "part-0.parquet"])
def test_what_a_deletion_has_left_takes_no_place_and_goes_later(spark: SparkSession, chain: Path, gone: str) -> None:
    (chain / name(3) / "part-0.parquet").write_text("x")
    raise_tombstone(spark, str(chain / name(3)))
    delete_path(spark, str(chain / name(3) / gone))
    if gone == "_zorder_version":
        forget_replaced(spark, str(chain / name(3)))
    decisions = plan_deletions(spark, owner(spark, chain), [str(chain)], 1, 24, note=False)
    assert "a run began to delete it" in decisions[1].why
    assert [one.version for one in decisions if one.delete] == [name(0)]
    assert collect_old(spark, str(chain), name(4), 1, 0) == [name(3), name(1), name(0)]
    assert left(chain) == [name(2), name(4)]


def test_other_tables_are_asked_for_only_when_something_would_go(
    spark: SparkSession, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def served_locations(_: SparkSession) -> dict[str, str]:
        asked.append("once")
        return {}

    monkeypatch.setattr(collect, "served_locations", served_locations)
    assert collect_old(spark, str(chain), name(4), 9, 24) == []
    assert asked == []
    assert collect_old(spark, str(chain), name(4), 0, 24) == [name(0)]
    assert asked == ["once"]
    forget_replaced(spark, str(chain / name(2)))
    assert collect_old(spark, str(chain), name(4), 9, 24) == []  # that nobody noted its replacement is mended now
    assert (chain / name(2) / NOTE).exists()
