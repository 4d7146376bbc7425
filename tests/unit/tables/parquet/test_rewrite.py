from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.rewrite import optimize, own_table, recover, request_from_marker, rewrite
from tests.unit.tables.parquet.batches import files, made, rows, same


def test_a_table_is_rewritten_on_demand_and_a_dry_run_tells_of_it(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 300), comment="kept", column_comments={"a": "too"})
    append(spark, spark.sql(rows(300, 600)), wanted)
    before = files(spark, table)
    report = optimize(spark, request_from_marker(spark, table), dry_run=True)
    assert report.files == len(before) == 8
    assert "would be rewritten" in str(report)
    assert files(spark, table) == before
    done = optimize(spark, wanted, dry_run=False)
    assert done.files_after == 4
    assert done.version in str(describe(spark, table))
    assert done.touched["a"] > done.touched_after["a"]
    assert "8 files" in str(done)
    assert done.to_dict()["text"] == str(done)
    assert same(spark.table(table.sql), spark.sql(rows(0, 600)))
    info = own_table(spark, table)
    assert (info.comment, info.columns[1][2]) == ("kept", "too")


def test_what_is_appended_meanwhile_is_not_lost(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100))
    write = build_module.write_data

    def meanwhile(*args: Any) -> None:
        write(*args)
        monkeypatch.setattr(build_module, "write_data", write)
        append(spark, spark.sql(rows(100, 120)), wanted)

    monkeypatch.setattr(build_module, "write_data", meanwhile)
    with pytest.raises(BuildError, match="Another run added 1"):
        rewrite(spark, wanted)
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))


@pytest.mark.parametrize(("curve", "encoding"), [("hilbert", "rank"), ("zorder", "bits"), ("linear", "rank")])
def test_a_table_without_a_model_keeps_its_curve(
    spark: SparkSession, table: TableName, curve: str, encoding: str
) -> None:
    spec = LayoutSpec(by=["a", "id"], files=4, curve=curve, encoding=encoding)
    build(spark, spark.sql(rows(0, 300)), BuildRequest(table, spec))
    found = request_from_marker(spark, table).spec
    assert (found.curve, found.encoding, list(found.by)) == (curve, encoding, ["a", "id"])


def test_only_tables_of_ours_are_optimized(spark: SparkSession, table: TableName) -> None:
    recover(spark, table)
    with pytest.raises(ZorderError, match="does not exist"):
        request_from_marker(spark, table)
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT 1 AS a")
    recover(spark, table)
    with pytest.raises(ZorderError, match="only a table that was built with zorder_by can be optimized"):
        request_from_marker(spark, table)
