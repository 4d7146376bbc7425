from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.version import (
    MARKER_DIRECTORY,
    Marker,
    is_version,
    new_version,
    parse_marker,
    read_marker,
    root_of,
    roots_of,
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
    path = str(tmp_path / "v [1]" / MARKER.version)
    write_marker(spark, path, MARKER)
    assert read_marker(spark, path) == MARKER


def test_a_marker_is_never_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    write_marker(spark, str(tmp_path), MARKER)
    with pytest.raises(Exception, match="exists already"):
        write_marker(spark, str(tmp_path), MARKER)


WHOLE = asdict(MARKER)
OF_NO_TYPE: list[Any] = [None, 1, True, {"a": 1}, [1], [["a"]]]
NO_FORMAT: list[Any] = [None, "1", True, 1.0, 2, 0, []]
MALFORMED: list[Any] = [
    "", "{}", "not json", "null", "1", '"v"', '{"version": "v"}', '["v"]', "[" * 100_000, '{"a":' * 100_000, "NaN",
    *({key: value for key, value in WHOLE.items() if key != lacking} for lacking in list(WHOLE)[:5]),
    *({**WHOLE, key: wrong} for key in WHOLE if key != "format" for wrong in OF_NO_TYPE),
    *({**WHOLE, "format": wrong} for wrong in NO_FORMAT),
    *({**WHOLE, "version": wrong} for wrong in ("", "/", "..", "v20240101T000000000-0123abce", f"{MARKER.version}\n")),
    *({**WHOLE, "base": wrong} for wrong in ("/", "..", "v1", "../v20240101T000000000-0123abcd")),
    *({**WHOLE, "table": wrong} for wrong in ("", "t", "db.", ".t", "db.../evil", "db.a/b", "a/b.t", "../x.t")),
    *({**WHOLE, "bucket_by": by, "buckets": buckets} for by, buckets in (([], 4), (["k"], 0), (["k"], -4))),
    json.dumps({**WHOLE, "schema": "x" * (16 << 20)}),
]  # fmt: skip


def test_what_is_no_marker_is_none(spark: SparkSession, tmp_path: Path) -> None:
    version = tmp_path / MARKER.version
    (version / MARKER_DIRECTORY).mkdir(parents=True)
    file = version / MARKER_DIRECTORY / "part-00000.txt"
    for number, planted in enumerate(MALFORMED):
        file.write_text(planted if isinstance(planted, str) else json.dumps(planted))
        assert read_marker(spark, str(version)) is None, (number, str(planted)[:200])
    file.write_text(json.dumps(WHOLE))
    assert read_marker(spark, str(version)) == MARKER
    assert read_marker(spark, str(tmp_path / "nothing")) is None
    with file.open("wb") as opened:
        opened.truncate(1 << 40)  # bytes that are not there: who read them would not end
    assert read_marker(spark, str(version)) is None


def test_what_a_later_release_adds_is_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / MARKER.version)
    assert parse_marker(json.dumps({**WHOLE, "of later": {"a": [1]}}), path) == MARKER
    new = ("schema", "partition_by", "former_roots", "bucket_by", "buckets")
    without = {key: value for key, value in WHOLE.items() if key not in new}
    assert parse_marker(json.dumps(without), path) == MARKER, "as releases of before wrote it"


def test_former_roots_are_folders_of_versions(tmp_path: Path) -> None:
    roots = ["/", "", "relative__zorder", "/w/../t__zorder", "/w/old__zorder", "s3a://b/t__zorder", "/etc"]
    assert roots_of(f"/w/t__zorder/{MARKER.version}", replace(MARKER, former_roots=roots)) == [
        "/w/t__zorder",
        "/w/old__zorder",
        "s3a://b/t__zorder",
    ]


@given(
    st.text(max_size=20) | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4).map(json.dumps)
)
def test_no_text_makes_another_error(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_marker(text, f"/w/{MARKER.version}")
