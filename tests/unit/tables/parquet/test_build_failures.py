"""Builds that fail, and those that meet another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, schema_location
from dbt_zorder.tables.parquet import build as module
from dbt_zorder.tables.parquet.build import build
from tests.support import checksum, versions
from tests.unit.conftest import lose_a_row
from tests.unit.tables.parquet.test_build import QUERY, run

pytestmark = pytest.mark.usefixtures("way")


def test_a_query_that_fails_leaves_the_old_table_and_nothing_else(spark: SparkSession, table: TableName) -> None:
    first = run(spark, table)
    before = checksum(spark.table(table.sql))
    with pytest.raises(Exception, match="broken"):
        run(spark, table, "SELECT id AS a, if(id = 77, raise_error('broken'), 's') AS s, id FROM range(100)")
    assert checksum(spark.table(table.sql)) == before
    assert versions(spark, table) == [first.version]


@pytest.mark.parametrize("step", ["make_plan", "write_data", "write_stats", "gather", "check_base", "publish"])
def test_a_failure_of_any_step_before_the_swap_leaves_the_old_table(
    spark: SparkSession, table: TableName, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(spark, table)
    before = checksum(spark.table(table.sql))

    def fail(*_: object, **__: object) -> None:
        msg = f"{step} failed"
        raise RuntimeError(msg)

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(RuntimeError, match=step):
        run(spark, table, QUERY.replace("500", "600"))
    assert checksum(spark.table(table.sql)) == before
    assert versions(spark, table) == [first.version]
    monkeypatch.undo()
    assert run(spark, table, QUERY.replace("500", "600")).summary.rows == 600


def test_stats_that_cannot_be_registered_after_the_swap_fail_no_build(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(spark, table)

    def fail(*_: object) -> None:
        msg = "late"
        raise RuntimeError(msg)

    monkeypatch.setattr(module, "publish_stats", fail)
    report = run(spark, table, QUERY.replace("500", "600"))
    assert report.summary.rows == spark.table(table.sql).count() == 600
    assert "could not be registered: late" in caplog.text


def test_a_table_that_another_run_changed_is_left_to_it(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spark, table)
    write = module.write_data

    def meanwhile(*args: Any) -> None:
        write(*args)
        monkeypatch.setattr(module, "write_data", write)
        run(spark, table, QUERY.replace("500", "900"))

    monkeypatch.setattr(module, "write_data", meanwhile)
    with pytest.raises(BuildError, match="Another run changed"):
        run(spark, table, QUERY.replace("500", "600"))
    assert spark.table(table.sql).count() == 900


def test_what_another_run_swaps_in_during_the_last_look_is_seen(spark: SparkSession, table: TableName) -> None:
    run(spark, table)
    request = BuildRequest(table, LayoutSpec(by=["a"], files=2))

    def guard() -> None:
        run(spark, table, "SELECT id AS a, 'new' AS column FROM range(900)", by=("a",))

    with pytest.raises(BuildError, match="Another run changed"):
        build(spark, spark.sql(QUERY.replace("500", "600")), request, guard)
    assert spark.table(table.sql).columns == ["a", "column"]
    assert spark.table(table.sql).where("column = 'new'").count() == 900


def test_rows_that_go_missing_stop_the_build(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spark, table)
    lose_a_row(monkeypatch, by_spark="id > 0")
    with pytest.raises(BuildError, match=r"500 rows .* the files hold 499"):
        run(spark, table)
    assert spark.table(table.sql).count() == 500
    assert len(versions(spark, table)) == 1


def test_a_first_build_that_fails_leaves_no_folder(spark: SparkSession, table: TableName) -> None:
    root = Path(schema_location(spark, table.schema).removeprefix("file:")) / f"{table.identifier}__zorder"
    with pytest.raises(Exception, match="boom"):
        run(spark, table, "SELECT id AS a, if(id = 7, raise_error('boom'), 'x') AS s FROM range(20)")
    assert not root.exists()
    (root / "v20260101T000000000-another0").mkdir(parents=True)
    with pytest.raises(Exception, match="boom"):
        run(spark, table, "SELECT id AS a, if(id = 7, raise_error('boom'), 'x') AS s FROM range(20)")
    assert [path.name for path in root.iterdir()] == ["v20260101T000000000-another0"]
