"""What a table's own versions are; ``settings`` of another catalog stand for another metastore."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_id import SETTING, catalog_id
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.retention import ownership
from dbt_zorder.tables.version import Marker, new_version, read_marker, write_marker
from tests.support import settings, unique


@pytest.fixture
def table(spark: SparkSession, database: str) -> Iterator[TableName]:
    with settings(spark, {SETTING: "one"}):
        yield TableName(database, unique("t"))


def request(table: TableName, tmp_path: Path) -> BuildRequest:
    spec = LayoutSpec(by=["id"], files=1)
    return BuildRequest(table, spec, location_root=str(tmp_path), keep_versions=0, grace_hours=0)


def make(spark: SparkSession, table: TableName, tmp_path: Path, rows: int) -> str:
    return build(spark, spark.range(rows).toDF("id"), request(table, tmp_path)).version


def batch(spark: SparkSession, table: TableName, tmp_path: Path, start: int, end: int) -> bool:
    """Add rows, and tell whether they went into the version that was served."""
    before = begin(spark, table)
    frame = spark.range(start, end).toDF("id")
    report = increment(spark, frame, request(table, tmp_path), Batch(may_rewrite=False), before)
    return report.appended is not None


def files(path: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for one in path.rglob("*"):
        if one.is_file():
            found[str(one.relative_to(path))] = (one.stat().st_size, one.stat().st_mtime_ns)
    return found


def as_before(spark: SparkSession, path: Path) -> None:
    """Let the marker at ``path`` be as earlier releases wrote it."""
    marker = read_marker(spark, str(path))
    assert marker is not None
    fields = {name: value for name, value in vars(marker).items() if name not in ("table_id", "catalog", "home")}
    for folder in path.glob("_zorder_version*"):
        for file in folder.iterdir():
            file.unlink()
        (folder / "part-00000.txt").write_text(json.dumps(fields))


def test_versions_of_one_table_share_an_identity(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    first = make(spark, table, tmp_path, 10)
    before = read_marker(spark, str(folder / first))
    assert before is not None
    second = make(spark, table, tmp_path, 20)
    after = read_marker(spark, str(folder / second))
    assert after is not None
    assert (before.catalog, before.home) == ("one", f"file:{folder / first}")
    assert (after.table_id, after.catalog) == (before.table_id, "one")
    assert len(before.table_id) == 16
    assert not (folder / first).exists()


def test_in_a_copied_catalog_a_batch_builds_a_version_of_its_own(
    spark: SparkSession, table: TableName, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make(spark, table, tmp_path, 10)
    folder = tmp_path / f"{table.identifier}__zorder"
    entry = journal.open_entry(spark, str(folder / first))  # another run is at work on a batch there
    journal.leave_entry(entry)
    before = files(folder / first)
    with settings(spark, {SETTING: "two"}):
        with pytest.raises(ZorderError, match="was built by another catalog, 'one'"):
            rollback(spark, table)
        assert not batch(spark, table, tmp_path, 10, 15)
        assert "gets a version of its own" in caplog.text
        assert batch(spark, table, tmp_path, 15, 20)
        assert spark.table(table.sql).count() == 20
        make(spark, table, tmp_path, 30)
        report = str(vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False))
        assert "another catalog, 'one', and this session has 'two'" in report
        assert drop_table(spark, table)
    assert files(folder / first) == before
    assert [path.name for path in folder.iterdir()] == [first]


def test_dropping_in_a_copied_catalog_what_the_original_serves_deletes_nothing(
    spark: SparkSession, table: TableName, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make(spark, table, tmp_path, 10)
    before = files(tmp_path)
    with settings(spark, {SETTING: "two"}):
        assert drop_table(spark, table)
    assert "its files stay" in caplog.text
    assert first in caplog.text
    assert describe(spark, table) is None
    assert files(tmp_path) == before


def test_two_catalogs_share_a_root(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    first = make(spark, table, tmp_path, 10)
    folder = tmp_path / f"{table.identifier}__zorder"
    before = files(folder / first)
    spark.sql(f"DROP TABLE {table.sql}")
    with settings(spark, {SETTING: "two"}):
        make(spark, table, tmp_path, 20)
        second = make(spark, table, tmp_path, 30)
        assert sorted(path.name for path in folder.iterdir()) == sorted([first, second])
        assert vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False).deleted == []
        assert drop_table(spark, table)
    assert files(folder / first) == before


def test_a_table_made_anew_by_an_old_name_leaves_the_old_versions(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    first = make(spark, table, tmp_path, 10)
    spark.sql(f"DROP TABLE {table.sql}")
    second = make(spark, table, tmp_path, 20)
    report = vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False)
    assert report.deleted == []
    assert f"keep    {first}" in str(report)
    assert "another table of this name" in str(report)
    assert drop_table(spark, table)
    assert [path.name for path in (tmp_path / f"{table.identifier}__zorder").iterdir()] == [first]
    assert second != first


def test_a_copy_of_a_version_is_not_deleted(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    first = make(spark, table, tmp_path / "a", 10)
    copied = tmp_path / "b" / f"{table.identifier}__zorder" / first
    shutil.copytree(tmp_path / "a" / f"{table.identifier}__zorder" / first, copied)
    make(spark, table, tmp_path / "b", 20)
    found = vacuum(spark, table, 0, 0, str(tmp_path / "b"), dry_run=False)
    assert first not in found.deleted
    assert copied.exists()
    spark.sql(f"ALTER TABLE {table.sql} SET LOCATION '{copied}'")
    assert not batch(spark, table, tmp_path / "b", 10, 15)
    assert spark.table(table.sql).count() == 15


def test_a_clone_in_another_schema_keeps_its_version(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    make(spark, table, tmp_path, 10)
    info = describe(spark, table)
    assert info is not None
    schema = unique("dev")
    spark.sql(f"CREATE DATABASE {schema}")
    try:
        spark.sql(f"CREATE TABLE {schema}.clone USING parquet LOCATION '{info.location}'")
        make(spark, table, tmp_path, 20)
        assert "is served as" in str(vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False))
        assert drop_table(spark, table)
        assert spark.table(f"{schema}.clone").count() == 10
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")


def test_a_version_of_an_earlier_release_is_stamped_by_a_batch(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    first = make(spark, table, tmp_path, 10)
    as_before(spark, folder / first)
    assert batch(spark, table, tmp_path, 10, 15)
    marker = read_marker(spark, str(folder / first))
    assert marker is not None
    assert (marker.catalog, marker.home, len(marker.table_id)) == ("one", f"file:{folder / first}", 16)
    with settings(spark, {SETTING: "two"}):
        assert not batch(spark, table, tmp_path, 15, 20)


def test_versions_of_an_earlier_release_go_by_whom_they_were_built_upon(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    stray = make(spark, table, tmp_path, 5)
    spark.sql(f"DROP TABLE {table.sql}")
    kept = replace(request(table, tmp_path), keep_versions=9)
    chain = [build(spark, spark.range(rows).toDF("id"), kept).version for rows in (10, 20)]
    for one in (stray, *chain):
        as_before(spark, folder / one)
    third = build(spark, spark.range(30).toDF("id"), kept).version
    assert vacuum(spark, table, 0, 0, str(tmp_path), dry_run=False).deleted == chain[::-1]
    assert sorted(path.name for path in folder.iterdir()) == sorted([stray, third])


@pytest.mark.parametrize("why", ["the metastore was moved", "another catalog has versions there"])
def test_a_version_of_an_earlier_release_that_may_be_anothers_is_not_touched(
    spark: SparkSession, table: TableName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    first = make(spark, table, tmp_path, 10)
    as_before(spark, folder / first)
    if why == "the metastore was moved":
        monkeypatch.setattr(ownership, "was_moved", lambda _: True)
    else:
        other = new_version()
        write_marker(spark, str(folder / other), Marker(other, str(table), "", "", ["id"], catalog="two"))
    before = files(folder / first)
    assert not batch(spark, table, tmp_path, 10, 15)
    assert drop_table(spark, table)
    assert files(folder / first) == before


def test_a_rename_does_not_write_into_versions_of_another_catalog(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    make(spark, table, tmp_path, 10)
    before, new = files(tmp_path), TableName(table.schema, unique("n"))
    with settings(spark, {SETTING: "two"}):
        spark.sql(f"ALTER TABLE {table.sql} RENAME TO {new.sql}")
        rename_stats(spark, table, new)
    assert files(tmp_path) == before


def test_what_a_first_build_that_was_killed_has_left_goes(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    folder, orphan = tmp_path / f"{table.identifier}__zorder", new_version()
    left = Marker(orphan, str(table), "", "", ["id"], table_id="0" * 16, catalog="one", home=str(folder / orphan))
    write_marker(spark, str(folder / orphan), left)
    served = make(spark, table, tmp_path, 10)
    assert [path.name for path in folder.iterdir()] == [served]


@pytest.mark.parametrize("field", ["table_id", "catalog", "home"])
def test_a_marker_of_which_a_field_is_no_text_is_none(spark: SparkSession, tmp_path: Path, field: str) -> None:
    folder = tmp_path / "_zorder_version"
    folder.mkdir()
    fields = vars(Marker(new_version(), "a.b", "", "", ["id"]))
    (folder / "part-00000.txt").write_text(json.dumps({**fields, field: ["x"]}))
    assert read_marker(spark, str(tmp_path)) is None


def test_a_build_whose_catalog_has_no_name_of_its_own_says_which_it_is(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    table = TableName(database, unique("t"))
    version = make(spark, table, tmp_path, 10)
    marker = read_marker(spark, str(tmp_path / f"{table.identifier}__zorder" / version))
    assert marker is not None
    assert marker.catalog == catalog_id(spark)


def test_stats_are_not_written_into_a_version_of_another_catalog(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    make(spark, table, tmp_path, 10)
    before = files(tmp_path)
    with settings(spark, {SETTING: "two"}), pytest.raises(ZorderError, match="its stats belong to that table"):
        rebuild_stats(spark, table)
    assert files(tmp_path) == before


def clone(spark: SparkSession, table: TableName, location: str) -> TableName:
    other = TableName(table.schema, unique("clone"))
    spark.sql(f"CREATE TABLE {other.sql} (id BIGINT) USING parquet LOCATION '{location}'")
    return other


@pytest.mark.parametrize("release", ["this", "before"])
def test_a_clone_that_its_table_has_left_behind_changes_nothing_there(
    spark: SparkSession, table: TableName, tmp_path: Path, release: str
) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    kept = replace(request(table, tmp_path), keep_versions=9, grace_hours=24)
    first = build(spark, spark.range(10).toDF("id"), kept).version
    if release == "before":
        as_before(spark, folder / first)
    other = clone(spark, table, str(folder / first))
    build(spark, spark.range(20).toDF("id"), kept)
    if release == "before":  # as if the first had not been given an identity
        as_before(spark, folder / first)
    before = files(folder / first)
    with pytest.raises(ZorderError, match="or has moved on to another version"):
        rollback(spark, other)
    assert not batch(spark, other, tmp_path, 10, 15)
    assert spark.table(other.sql).count() == 15
    assert {name: size for name, size in files(folder / first).items() if name in before} == before
    spark.sql(f"ALTER TABLE {other.sql} SET LOCATION '{folder / first}'")
    assert drop_table(spark, other)
    rollback(spark, table)
    assert spark.table(table.sql).count() == 10


def test_versions_before_a_rename_by_sql_are_those_of_the_new_name(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    kept = replace(request(table, tmp_path), keep_versions=9, grace_hours=24)
    first = build(spark, spark.range(10).toDF("id"), kept).version
    renamed = TableName(table.schema, unique("renamed"))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {renamed.sql}")
    second = build(spark, spark.range(20).toDF("id"), replace(kept, table=renamed)).version
    build(spark, spark.range(30).toDF("id"), request(table, tmp_path))  # a new table of the old name
    assert rollback(spark, renamed) == (second, first)
    assert spark.table(renamed.sql).count() == 10
    assert rollback(spark, renamed, second) == (first, second)
    assert vacuum(spark, renamed, 0, 0, str(tmp_path), dry_run=False).deleted == [first]
    assert spark.table(table.sql).count() == 30
    assert spark.table(renamed.sql).count() == 20


def test_a_version_before_a_rename_stays_where_a_table_of_the_old_name_is_served_from_it(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    folder = tmp_path / f"{table.identifier}__zorder"
    kept = replace(request(table, tmp_path), keep_versions=9, grace_hours=24)
    first = build(spark, spark.range(10).toDF("id"), kept).version
    renamed = TableName(table.schema, unique("renamed"))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {renamed.sql}")
    build(spark, spark.range(20).toDF("id"), replace(kept, table=renamed))
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT) USING parquet LOCATION '{folder / first}'")
    with pytest.raises(ZorderError, match="no other one is kept"):
        rollback(spark, renamed)
    assert drop_table(spark, renamed)
    assert spark.table(table.sql).count() == 10
