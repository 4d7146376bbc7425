from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, managed_location, schema_location
from dbt_zorder.tables.parquet import build as building
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.stats_view import stats_table
from tests.support import unique


def make(spark: SparkSession, table: TableName, location_root: str | None = None, rows: int = 10) -> None:
    request = BuildRequest(table, LayoutSpec(by=["id"], files=1), location_root=location_root)
    build(spark, spark.range(rows).toDF("id"), request)


def plain(spark: SparkSession, table: TableName, location: str = "") -> str:
    place = f"LOCATION '{location}'" if location else ""
    spark.sql(f"CREATE TABLE {table.sql} USING parquet {place} AS SELECT id FROM range(1000)")
    info = describe(spark, table)
    assert info is not None
    return info.location


def test_a_table_that_lies_where_versions_would_is_an_error(spark: SparkSession, table: TableName) -> None:
    other = TableName(table.schema, f"{table.identifier}__zorder")
    place = plain(spark, other)
    with pytest.raises(ConfigError, match=f"{table} is to have its versions in .*, and {other} lies in {place}"):
        make(spark, table)
    assert describe(spark, table) is None
    assert spark.table(other.sql).count() == 1000


@pytest.mark.parametrize("inside", ["", "/sub"])
def test_a_table_that_lies_in_or_above_a_location_root_is_an_error(
    spark: SparkSession, table: TableName, tmp_path: Path, inside: str
) -> None:
    other = TableName(table.schema, unique("other"))
    plain(spark, other, f"{tmp_path}/data")
    with pytest.raises(ConfigError, match=f"and {other} lies in .*/data"):
        make(spark, table, f"{tmp_path}/data{inside}")
    moved = TableName(table.schema, unique("moved"))
    plain(spark, moved, f"{tmp_path}/root/{table.identifier}__zorder/data")
    with pytest.raises(ConfigError, match=f"and {moved} lies in "):
        make(spark, table, f"{tmp_path}/root")


def test_a_location_root_in_the_folder_of_a_managed_table_is_an_error(spark: SparkSession, table: TableName) -> None:
    other = TableName(table.schema, unique("a"))
    place = plain(spark, other)
    with pytest.raises(ConfigError, match=f"{other} lies in "):
        make(spark, table, f"{place}/sub")


@pytest.mark.parametrize("known", [True, False])
def test_a_managed_table_with_another_in_its_folder_is_not_replaced(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    inner = TableName(table.schema, unique("b"))
    place = plain(spark, table)
    with monkeypatch.context() as before:  # as an earlier release did
        before.setattr(building, "check_root", lambda *_: None)
        make(spark, inner, f"{place}/sub")
    info = describe(spark, inner)
    assert info is not None
    if not known:
        spark.sql(f"DROP TABLE {inner.sql}")
        spark.sql(f"DROP TABLE {stats_table(inner).sql}")
    with pytest.raises(ConfigError, match=f"{inner} lies in" if known else "this catalog does not know"):
        make(spark, table)
    assert spark.table(table.sql).count() == 1000
    assert spark.read.parquet(info.location).count() == 10


def test_what_comes_into_the_folder_during_a_build_stays(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = plain(spark, table)
    other = TableName(table.schema, unique("late"))
    monkeypatch.setattr(building, "check_former", lambda *_: plain(spark, other, f"{place}/late"))
    make(spark, table)
    assert f"{other} lies in" in caplog.text
    assert spark.table(other.sql).count() == 1000
    assert spark.table(table.sql).count() == 10


@pytest.mark.parametrize("copied", [True, False])
def test_the_folder_of_a_managed_table_goes_unless_the_metastore_is_a_copy(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    place = Path(plain(spark, table).removeprefix("file:"))
    monkeypatch.setattr(building, "was_moved", lambda _: copied)
    make(spark, table)
    assert place.exists() == copied


def test_a_location_root_in_a_version_is_an_error(spark: SparkSession, table: TableName) -> None:
    make(spark, table)
    info = describe(spark, table)
    assert info is not None
    other = TableName(table.schema, unique("other"))
    with pytest.raises(ConfigError, match="lies in the version v"):
        make(spark, other, info.location)


def test_neighbours_in_one_schema_are_in_nobodys_way(spark: SparkSession, table: TableName) -> None:
    plain(spark, TableName(table.schema, unique("n")))
    make(spark, table, schema_location(spark, table.schema))
    assert managed_location(spark, table).startswith(schema_location(spark, table.schema))
    assert spark.table(table.sql).count() == 10


@pytest.mark.parametrize("named", [True, False])
def test_a_schema_in_the_folder_of_a_managed_table_of_another_schema_is_an_error(
    spark: SparkSession, table: TableName, named: bool
) -> None:
    outer = TableName(table.schema, unique("a"))
    place = plain(spark, outer)
    schema = unique("inner")
    spark.sql(f"CREATE DATABASE {schema} LOCATION '{place}/deep/{schema}'")
    inner = TableName(schema, unique("t"))
    try:
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"{outer} lies in {place}"):
                make(spark, inner, f"{place}/deep" if named else None)
        spark.sql(f"DROP TABLE {outer.sql}")
        make(spark, inner)
        assert spark.table(inner.sql).count() == 10
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")
