from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.base import Table
from dbt_zorder.tables.delta.table import DeltaTable
from dbt_zorder.tables.iceberg.table import IcebergTable
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet.table import ParquetTable
from dbt_zorder.tables.registry import LAKEHOUSE, existing, for_format, lakehouse_table, open_table, table_of

KINDS = {"parquet": ParquetTable, "delta": DeltaTable, "iceberg": IcebergTable}


@pytest.mark.parametrize("provider", KINDS)
def test_a_table_is_of_the_kind_of_its_provider(spark: SparkSession, table: TableName, provider: str) -> None:
    info = TableInfo("MANAGED", provider, "file:/w/t", (), (), "")
    request = BuildRequest(table, LayoutSpec(by=["id"]), file_format=provider)
    for made in (table_of(spark, table, info), for_format(spark, request, info)):
        assert type(made) is KINDS[provider]
        assert (made.name, made.info) == (table, info)
    assert for_format(spark, request).info is None
    if provider != "parquet":
        assert type(lakehouse_table(spark, request)) is KINDS[provider]
        other = table_of(spark, table, info)
        with pytest.raises(ZorderError, match=f"{table} is {provider}, which keeps its own statistics"):
            other.verify()


def test_each_format_with_statistics_has_its_table() -> None:
    assert tuple(LAKEHOUSE) == FORMATS
    assert [kind.form.name for kind in LAKEHOUSE.values()] == [*FORMATS]


def test_what_a_format_replaces_has_no_version_of_it(spark: SparkSession, table: TableName) -> None:
    csv = TableInfo("MANAGED", "csv", "file:/w/t", (), (), "")
    request = BuildRequest(table, LayoutSpec(by=["id"]), file_format="delta")
    assert for_format(spark, request, csv).version is None
    assert for_format(spark, request).version is None


def test_a_table_is_opened_by_one_look_at_the_catalog(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_table(spark, table) is None
    with pytest.raises(ZorderError, match="does not exist"):
        existing(open_table(spark, table), table)
    request = BuildRequest(table, LayoutSpec(by=["id"], files=2))
    for_format(spark, request).build(spark.range(100).toDF("id"), request)
    found: Table = existing(open_table(spark, table), table)
    assert isinstance(found, ParquetTable)
    assert found.info == describe(spark, table)
    assert found.version is not None
    assert found.summary().files == 2
    assert found.verify().findings == []

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(build_module, "describe", fail)
    report = found.build(spark.range(50).toDF("id"), request)
    assert report.summary.rows == spark.table(table.sql).count() == 50


def test_a_view_and_a_table_of_sparks_own_are_opened_too(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS id")
    found = existing(open_table(spark, table), table)
    assert found.info is not None
    assert found.info.is_view
    with pytest.raises(ZorderError, match="is a view, which has no files of its own"):
        found.verify()
    with pytest.raises(ZorderError, match="has no stats"):
        found.summary()
