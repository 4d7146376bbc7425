from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.option_parsers import MOST_HOURS
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, schema_location
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.operations.vacuum import Vacuumed, vacuum
from dbt_zorder.tables.parquet.retention.deletions import RetentionDecision
from dbt_zorder.tables.version import Marker, new_version, read_marker, write_marker
from tests.support import unique
from tests.unit.snapshots import tree


def make(spark: SparkSession, table: TableName, rows: int = 10, location_root: str | None = None) -> str:
    request = BuildRequest(table, LayoutSpec(by=["id"], files=1), location_root=location_root)
    return build(spark, spark.range(rows).toDF("id"), request).version


def root(spark: SparkSession, table: TableName) -> Path:
    return Path(schema_location(spark, table.schema).removeprefix("file:")) / f"{table.identifier}__zorder"


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_dry_run_says_what_would_go_and_why(spark: SparkSession, table: TableName) -> None:
    first, second, third = (make(spark, table) for _ in range(3))
    orphan = new_version()
    write_marker(spark, str(root(spark, table) / orphan), Marker(orphan, str(table), third, "", ["id"]))
    (root(spark, table) / "notes").mkdir()
    found = vacuum(spark, table, keep=1, grace_hours=0)
    assert {one.version: (one.delete, one.why.split(" at ")[0]) for one, _ in found.versions} == {
        first: (True, "was replaced"),
        second: (False, "was replaced"),
        third: (False, "is the version that is served"),
        orphan: (True, "is served by no table: its build failed, or its table was dropped by hand"),
        "notes": (False, "is no version of ours"),
    }
    assert all(size > 0 for one, size in found.versions if one.version != "notes")
    assert found.deleted == []
    assert "2 of 5 versions to delete" in str(found)
    assert left(root(spark, table)) == sorted([first, second, third, orphan, "notes"])
    assert "grace period of 24 hours goes on" in str(vacuum(spark, table, keep=0))


def test_what_is_beyond_both_bounds_goes_and_a_second_run_finds_nothing(spark: SparkSession, table: TableName) -> None:
    first, second, third = (make(spark, table) for _ in range(3))
    assert vacuum(spark, table, keep=0, grace_hours=24, dry_run=False).deleted == []
    done = vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    assert done.deleted == [second, first]
    assert f"deleted {first}" in str(done)
    assert left(root(spark, table)) == [third]
    assert vacuum(spark, table, keep=0, grace_hours=0, dry_run=False).deleted == []
    assert spark.table(table.sql).count() == 10


def test_a_version_that_is_put_back_meanwhile_is_not_told_as_deleted(table: TableName) -> None:
    decisions = [RetentionDecision(f"/r/{name}", True, "was replaced") for name in ("v2", "v1")]
    report = str(Vacuumed(table, list(zip(decisions, (20, 10), strict=True)), False, ["v1"]))
    assert [line.split() for line in report.splitlines()[1:]] == [
        ["keep", "v2", "20", "bytes", "it", "is", "served", "again"],
        ["deleted", "v1", "10", "bytes", "was", "replaced"],
        ["1", "of", "2", "versions", "deleted,", "10", "bytes"],
    ]


def test_a_first_build_that_failed_leaves_no_table_and_its_folder_goes(spark: SparkSession, table: TableName) -> None:
    orphan = new_version()
    write_marker(spark, str(root(spark, table) / orphan), Marker(orphan, str(table), "", "", ["id"]))
    assert vacuum(spark, table, dry_run=False).deleted == []
    assert vacuum(spark, table, grace_hours=0, dry_run=False).deleted == [orphan]
    assert describe(spark, table) is None


def test_a_table_renamed_by_plain_sql_keeps_its_version(spark: SparkSession, table: TableName) -> None:
    version = make(spark, table)
    backup = TableName(table.schema, unique("backup"))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {backup.sql}")
    make(spark, table, 20)
    found = vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    assert f"{version}  " in str(found)
    assert f"is served as {backup}" in str(found)
    assert spark.table(backup.sql).count() == 10


def test_versions_in_a_former_root_are_found(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    old = [make(spark, table, location_root=str(tmp_path / name)) for name in ("one", "two")]
    new = make(spark, table)
    assert vacuum(spark, table, keep=0, grace_hours=0, dry_run=False).deleted == old[::-1]
    assert left(root(spark, table)) == [new]
    assert [left(tmp_path / name / f"{table.identifier}__zorder") for name in ("one", "two")] == [[], []]


@pytest.mark.parametrize(
    "more",
    [
        {"keep": -1},
        {"keep": True},
        *({"grace_hours": hours} for hours in (-1, "soon", float("inf"), float("nan"), 1e12)),
    ],
)
def test_bounds_out_of_range_are_errors(spark: SparkSession, table: TableName, more: dict[str, Any]) -> None:
    with pytest.raises(ZorderError, match=f"{table}: .*must be a"):
        vacuum(spark, table, dry_run=False, **more)


def test_a_grace_period_of_a_century_is_kept(spark: SparkSession, table: TableName) -> None:
    for _ in range(2):
        make(spark, table)
    assert vacuum(spark, table, keep=0, grace_hours=MOST_HOURS, dry_run=False).deleted == []


def test_a_schema_that_is_not_there_is_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(ZorderError, match="There is no schema not_yet"):
        vacuum(spark, TableName("not_yet", "t"))


def test_roots_that_a_planted_marker_names_are_skipped_and_said(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    old, new = make(spark, table), make(spark, table)
    strange = ["/", "", "..", str(tmp_path / "x" / ".." / "t__zorder"), "nosuch://host/t__zorder"]
    for version in (old, new):
        place = str(root(spark, table) / version)
        marker = read_marker(spark, place)
        assert marker is not None
        write_marker(spark, place, replace(marker, former_roots=strange), renew=True)
    assert marker is not None
    # a folder that is named like a version, and whose marker is that of another one
    victim = tmp_path / "t__zorder" / new_version()
    victim.mkdir(parents=True)
    (victim / "data.parquet").write_text("somebody else's")
    write_marker(spark, str(victim), replace(marker, version="/"))
    before = tree(tmp_path)
    done = vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    assert done.deleted == [old]
    assert [name for name, _ in done.skipped] == strange
    assert "  skip    '/', which the marker names: no folder of versions has such a name" in str(done)
    assert "'nosuch://host/t__zorder', which the marker names: cannot be listed: " in str(done)
    again = make(spark, table)
    assert vacuum(spark, table, keep=0, grace_hours=0, dry_run=False).deleted == [new]
    assert left(root(spark, table)) == [again]
    assert drop_table(spark, table)
    assert tree(tmp_path) == before
