"""A catalog that accepts an entry and keeps another location in it, or one that Spark does not read by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName, describe, location_of
from dbt_zorder.tables.metastore import replace_entry
from dbt_zorder.tables.opened import check_opens, check_readable
from dbt_zorder.tables.parquet import swap
from dbt_zorder.tables.parquet.swap import publish
from tests.support import unique
from tests.unit.tables.parquet.versions import V1, V2, V3, Write, content

ELSEWHERE: dict[str, Callable[[str], str]] = {
    "in another folder": lambda location: location.replace("/v2", "/other/v2"),
    "by a pattern": lambda location: location.replace("/v2", "/${y}/v2"),
    "as it was": lambda _: "",
    "at its parent": lambda location: location.rpartition("/")[0],
}
"""What such a catalog makes of a location."""


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    return TableName(database, unique("t"))


@pytest.fixture
def write_by_name(spark: SparkSession, tmp_path: Path, write: Write) -> Callable[[str, str], Any]:
    return lambda version, query: (write(version, query), str(tmp_path / version))


def keep_elsewhere(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Let the catalog keep another location of whatever is moved."""
    real = swap._move

    def moved(table: TableName, location: str) -> str:
        found = ELSEWHERE[how](location)
        return real(table, found) if found else "SELECT 1"

    monkeypatch.setattr(swap, "move_entry", lambda *_: False)
    monkeypatch.setattr(swap, "_move", moved)


@pytest.mark.parametrize("has_client", [True, False])
@pytest.mark.parametrize("how", ELSEWHERE)
def test_a_table_that_was_not_moved_to_its_version_is_put_back(
    spark: SparkSession,
    table: TableName,
    write_by_name: Callable[[str, str], Any],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    has_client: bool,
) -> None:
    publish(spark, table, *write_by_name(V1, "SELECT 1 AS a"))
    before = describe(spark, table)
    with monkeypatch.context() as patched:
        keep_elsewhere(patched, how)
        if not has_client:
            patched.setattr(swap, "kept_entry", lambda *_: None)
            real = swap._undo

            def undo(*args: Any, **kwargs: Any) -> str:
                patched.undo()
                return real(*args, **kwargs)

            patched.setattr(swap, "_undo", undo)
        with pytest.raises(BuildError, match=f"accepted the new version of {table}, but .* The table is as it was, at"):
            publish(spark, table, *write_by_name(V2, "SELECT 2 AS a"))
    assert describe(spark, table) == before
    assert content(spark, table) == [(1,)]
    publish(spark, table, *write_by_name(V3, "SELECT 3 AS a"))
    assert content(spark, table) == [(3,)]


def test_what_cannot_be_put_back_is_said(
    spark: SparkSession, table: TableName, write_by_name: Callable[[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(spark, table, *write_by_name(V1, "SELECT 1 AS a"))
    keep_elsewhere(monkeypatch, "in another folder")
    monkeypatch.setattr(swap, "kept_entry", lambda *_: None)
    with pytest.raises(BuildError, match=f"could not be put back: the table was at .*{V1} before"):
        publish(spark, table, *write_by_name(V2, "SELECT 2 AS a"))


@pytest.mark.parametrize("how", ["in another folder", "by a pattern", "at its parent"])
@pytest.mark.parametrize("kind", ["none", "view", "managed", "ours"])
def test_what_was_not_made_at_its_version_takes_nobodys_place(
    spark: SparkSession,
    table: TableName,
    write_by_name: Callable[[str, str], Any],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    kind: str,
) -> None:
    if kind == "ours":
        publish(spark, table, *write_by_name(V1, "SELECT 1 AS a"))
    elif kind != "none":
        made = "VIEW" if kind == "view" else "TABLE"
        spark.sql(f"CREATE {made} {table.sql} {'' if kind == 'view' else 'USING parquet'} AS SELECT 1 AS a")
    before, real = describe(spark, table), swap._create
    monkeypatch.setattr(swap, "_create", lambda name, wanted, place: real(name, wanted, ELSEWHERE[how](place)))
    with pytest.raises(BuildError, match="still stands at" if before else "there is none now|does not exist now"):
        publish(spark, table, *write_by_name(V2, "SELECT 'x' AS b"))
    assert describe(spark, table) == before
    if before:
        assert content(spark, table) == [(1,)]
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN {table.schema}").collect() if "_next" in row[1]] == []


@pytest.mark.parametrize("kind", ["view", "managed", "ours"])
def test_what_takes_another_place_as_it_replaces_is_put_back(
    spark: SparkSession,
    table: TableName,
    write_by_name: Callable[[str, str], Any],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    if kind == "ours":
        publish(spark, table, *write_by_name(V1, "SELECT 1 AS a"))
    else:
        made = "VIEW" if kind == "view" else "TABLE"
        spark.sql(f"CREATE {made} {table.sql} {'' if kind == 'view' else 'USING parquet'} AS SELECT 1 AS a")
    before = describe(spark, table)

    def replaced(spark: SparkSession, table: TableName, following: TableName) -> bool:
        done = replace_entry(spark, table, following)
        spark.sql(f"ALTER TABLE {table.sql} SET LOCATION '/nowhere/{V2}'")
        return done

    monkeypatch.setattr(swap, "replace_entry", replaced)
    with pytest.raises(BuildError, match="The table is as it was"):
        publish(spark, table, *write_by_name(V2, "SELECT 'x' AS b"))
    assert describe(spark, table) == before
    assert content(spark, table) == [(1,)]


def test_a_path_that_spark_takes_for_a_pattern_is_found_out(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write
) -> None:
    """A ``location_root: /data/${y}``: the catalog has it as it was given, and every SELECT fails."""
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    place = tmp_path / "${y}" / V2
    spark.sql("SELECT 2 AS a").write.parquet(str(place))
    with pytest.raises(BuildError, match=r"cannot open it at .*Path does not exist.* The table is as it was"):
        publish(spark, table, write("other", "SELECT 2 AS a"), str(place))
    assert content(spark, table) == [(1,)]


@pytest.mark.parametrize("caches", [False, True])
def test_the_stats_of_a_version_are_opened_too(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, caches: bool
) -> None:
    cached = spark.range(1).cache() if caches else None  # Spark then reads an entry that it is to forget
    for version in (V1, V2):
        write(f"{version}/_zorder_stats", "SELECT 1 AS a")
    definition = swap.Definition(spark.sql("SELECT 1 AS a").schema)
    publish(spark, table, definition, str(tmp_path / V1 / "_zorder_stats"))
    keep_elsewhere(monkeypatch, "by a pattern")
    with pytest.raises(BuildError, match="as it was"):
        publish(spark, table, definition, str(tmp_path / V2 / "_zorder_stats"))
    if cached is not None:
        cached.unpersist()


def test_the_version_of_another_run_is_that_runs(
    spark: SparkSession, table: TableName, write_by_name: Callable[[str, str], Any]
) -> None:
    publish(spark, table, *write_by_name(V2, "SELECT 2 AS a"))
    check_opens(spark, table, f"/nowhere/{V1}")
    check_opens(spark, table, f"/nowhere/{V1}", location_of(spark, table).replace(V2, V3))
    with pytest.raises(BuildError, match="though it was given"):
        check_opens(spark, table, f"/nowhere/{V1}", location_of(spark, table))


def test_without_rows_there_may_be_no_file(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1 AS a, 2 AS p WHERE false")
    frame.write.partitionBy("p").parquet(str(tmp_path / V1))
    publish(spark, table, swap.Definition(frame.schema, ["p"]), str(tmp_path / V1))
    assert content(spark, table) == []


def test_a_renamed_table_is_opened(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(BuildError, match=f"{table} was renamed, but cannot be opened under that name"):
        check_readable(spark, table, "was renamed")
    spark.sql(f"CREATE TABLE {table.sql} (a int) USING parquet")
    check_readable(spark, table, "was renamed")
