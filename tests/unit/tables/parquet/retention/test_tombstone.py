from __future__ import annotations

import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.tables import markers as lines
from dbt_zorder.tables.parquet.retention import deletions as collect
from dbt_zorder.tables.parquet.retention import tombstone
from dbt_zorder.tables.parquet.retention.deletions import delete_version
from dbt_zorder.tables.parquet.retention.tombstone import deletion_began, is_dying, raise_tombstone, take_away
from dbt_zorder.tables.version import MARKER_DIRECTORY, Marker, markers_below, new_version, read_marker, write_marker


@pytest.fixture
def version(spark: SparkSession, tmp_path: Path) -> Path:
    name = new_version()
    write_marker(spark, str(tmp_path / name), Marker(name, "default.t", "", "", ["a"]))
    return tmp_path / name


def test_each_deletion_has_a_tombstone_of_its_own(spark: SparkSession, version: Path) -> None:
    path = str(version)
    assert not is_dying(spark, path)
    one, other = raise_tombstone(spark, path), raise_tombstone(spark, path)
    take_away(spark, one)
    assert is_dying(spark, path)
    take_away(spark, other)
    assert not is_dying(spark, path)
    assert [entry.name for entry in version.iterdir()] == [MARKER_DIRECTORY]


def test_what_is_gone_gets_no_tombstone(spark: SparkSession, tmp_path: Path) -> None:
    raise_tombstone(spark, str(tmp_path / "never"))
    assert not (tmp_path / "never").exists()
    delete_version(spark, str(tmp_path / "never"))
    assert not (tmp_path / "never").exists()


def test_a_tombstone_is_seen_without_a_client_of_the_file_system(
    spark: SparkSession, version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stone = raise_tombstone(spark, str(version))
    for module in (tombstone, lines):
        monkeypatch.setattr(module, "has_client", lambda _: False)
    assert is_dying(spark, str(version))
    monkeypatch.undo()
    take_away(spark, stone)
    monkeypatch.setattr(tombstone, "has_client", lambda _: False)
    assert not is_dying(spark, str(version))


def test_the_tombstone_goes_last_and_tells_what_the_marker_did(
    spark: SparkSession, version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (version / "part-0.parquet").write_text("x")
    path, left = str(version), version.parent / "left"

    def copied(*args: object, last: tuple[str, ...]) -> None:
        shutil.rmtree(version / MARKER_DIRECTORY)
        shutil.copytree(version, left)

    monkeypatch.setattr(collect, "delete_path", copied)
    delete_version(spark, path)
    assert read_marker(spark, path) is None
    marker = read_marker(spark, path, dying=True)
    assert marker is not None
    assert marker.version == version.name
    assert markers_below(spark, [str(version.parent)]) == {path: marker}
    monkeypatch.undo()
    delete_version(spark, path)
    assert not version.exists()


def test_a_deletion_began_when_its_first_tombstone_was_written(spark: SparkSession, version: Path) -> None:
    path = str(version)
    assert deletion_began(spark, path) is None
    for number, stone in enumerate([raise_tombstone(spark, path), raise_tombstone(spark, path)]):
        os.utime(stone.removeprefix("file:"), (1_700_000_000 + number, 1_700_000_000 + number))
    assert deletion_began(spark, path) == datetime.fromtimestamp(1_700_000_000, timezone.utc)
