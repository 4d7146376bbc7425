from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.version import (
    Marker,
    is_version,
    new_version,
    read_marker,
    root_of,
    version_of,
    write_marker,
)

MARKER = Marker("v20240101T000000000-0123abcd", "db.t", "", "2024-01-01T00:00:00+00:00", ["a", 'it\'s "ü"'])


def test_names_are_versions_and_no_two_are_alike() -> None:
    names = [new_version() for _ in range(200)]
    assert all(is_version(name) for name in names)
    assert len(set(names)) == 200
    assert [name[:19] for name in names] == sorted(name[:19] for name in names)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "v1",
        "x20240101T000000000-0123abcd",
        "v20240101T000000000-0123ABCD",
        "v20240101T000000000-0123abcd.tmp",
        "data",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not is_version(name)


@pytest.mark.parametrize(
    ("location", "version"),
    [
        ("file:/w/t__zorder/v20240101T000000000-0123abcd", "v20240101T000000000-0123abcd"),
        ("s3://b/v20240101T000000000-0123abcd/", "v20240101T000000000-0123abcd"),
        ("v20240101T000000000-0123abcd", "v20240101T000000000-0123abcd"),
        ("file:/w/v20240101T000000000-0123abcd/_zorder_stats", ""),
        ("file:/w/t", ""),
        ("", ""),
    ],
)
def test_a_location_tells_its_version(location: str, version: str) -> None:
    assert version_of(location) == version


def test_versions_lie_beside_the_place_of_the_table(spark: SparkSession, database: str) -> None:
    table = TableName(database, "t")
    assert root_of(spark, table, None).endswith(f"/{database}.db/t__zorder")
    assert root_of(spark, table, "s3://bucket/x/") == "s3://bucket/x/t__zorder"
    assert root_of(spark, table, "/data") == "/data/t__zorder"


def test_a_relative_root_counts_from_the_schema_as_spark_counts_it(spark: SparkSession, database: str) -> None:
    assert root_of(spark, TableName(database, "t"), "sub/dir").endswith(f"/{database}.db/sub/dir/t__zorder")


def test_a_marker_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "v [1]")
    write_marker(spark, path, MARKER)
    assert read_marker(spark, path) == MARKER


def test_a_marker_is_never_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    write_marker(spark, str(tmp_path), MARKER)
    with pytest.raises(Exception, match="exists already"):
        write_marker(spark, str(tmp_path), MARKER)


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"version": "v"}', '["v"]'])
def test_what_is_no_marker_is_none(spark: SparkSession, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "_zorder_version"
    folder.mkdir()
    (folder / "part-0.txt").write_text(text)
    assert read_marker(spark, str(tmp_path)) is None
    assert read_marker(spark, str(tmp_path / "nothing")) is None
