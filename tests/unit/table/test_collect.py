from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.table.collect import collect_old, replaced_at
from dbt_zorder.table.version import Marker, write_marker

NOW = datetime.now(timezone.utc)


def name(number: int) -> str:
    return f"v20240101T00000000{number}-0123abcd"


def marker(number: int, base: int | None = None, hours: float = 0) -> Marker:
    made = (NOW - timedelta(hours=hours)).isoformat()
    return Marker(name(number), "db.t", "" if base is None else name(base), made, ["a"])


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


@pytest.fixture
def chain(spark: SparkSession, tmp_path: Path) -> Path:
    """Versions 0 to 4, each built upon the one before, 40, 30, 20, 10 and 0 hours ago."""
    for number in range(5):
        base = number - 1 if number else None
        write_marker(spark, str(tmp_path / name(number)), marker(number, base, 40 - 10 * number))
    return tmp_path


@pytest.mark.parametrize(
    ("keep", "grace", "kept"),
    [
        (2, 0, [2, 3, 4]),
        (0, 0, [4]),
        (9, 0, [0, 1, 2, 3, 4]),
        (0, 24, [1, 2, 3, 4]),  # 1 was replaced when 2 was begun, 20 hours ago; 0 was replaced 30 hours ago
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


def test_a_version_was_replaced_when_the_last_build_upon_it_began() -> None:
    base = marker(1, hours=9)
    others = [base, marker(2, 1, 5), marker(3, 1, 3), marker(4, 3, 1)]
    assert replaced_at(base, others) == NOW - timedelta(hours=3)
    assert replaced_at(others[1], others) == NOW - timedelta(hours=5)  # a failed build: nothing stands upon it
