"""What the log of a format says of a table's version and of its last whole layout."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.delta import log as delta_log
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.tables.iceberg import history
from dbt_zorder.tables.lakehouse.state import current_version
from tests.formats.tables import build, last_whole_layout, request, rows


@pytest.mark.parametrize("commits", [20, 1, 0])
def test_the_last_whole_layout_is_found_however_many_commits_came_upon_it(
    spark: SparkSession, table: TableName, file_format: str, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many commits are looked at one by one, and those behind them are asked by a job."""
    monkeypatch.setattr(history, "_MOST_COMMITS", commits)
    monkeypatch.setattr(delta_log, "_MOST_COMMITS", commits)
    spark.sql(f"CREATE TABLE {table.sql} (id LONG) USING {file_format}")
    assert last_whole_layout(spark, file_format, table).files == 0
    wanted = request(table, file_format, files=4)
    report = build(spark, rows(spark, 0, 1_000), wanted)
    for first in (1_000, 1_100):
        rows(spark, first, first + 100).coalesce(1).writeTo(table.sql).append()
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('team' = 'us')")
    found = last_whole_layout(spark, file_format, table)
    assert (found.files, found.rows, found.bytes) == (4, 1_000, report.summary.bytes)
    if file_format == "delta" and commits == 20:
        assert next(delta_state(spark, table).last_commits())["operation"] == "SET TBLPROPERTIES", (
            "else all was asked by the job"
        )


def test_the_last_whole_layout_is_found_behind_a_commit_that_has_expired(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    if file_format != "iceberg":
        pytest.skip("Delta keeps its log in one piece")
    build(spark, rows(spark, 0, 1_000), request(table, file_format, files=4))
    rows(spark, 1_000, 1_100).writeTo(table.sql).append()
    gone = current_version(spark, file_format, table)
    rows(spark, 1_100, 1_200).writeTo(table.sql).append()
    spark.sql(
        f"CALL spark_catalog.system.expire_snapshots(table => '{table}', snapshot_ids => ARRAY({gone}))"
    ).collect()
    assert gone not in [str(row[0]) for row in spark.sql(f"SELECT snapshot_id FROM {table.sql}.snapshots").collect()]
    assert last_whole_layout(spark, file_format, table).rows == 1_000


def test_a_version_is_that_of_the_last_commit_by_whomever(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    build(spark, rows(spark, 0, 100), request(table, file_format, files=2))
    before = current_version(spark, file_format, table)
    rows(spark.newSession(), 100, 200).writeTo(table.sql).append()
    found = current_version(spark, file_format, table)
    if file_format == "delta":
        assert int(found) == int(before) + 1
    else:
        branch = spark.sql(f"SELECT snapshot_id FROM {table.sql}.refs WHERE name = 'main'").collect()
        assert found == str(branch[0][0]) != before


def test_a_table_that_was_set_back_is_laid_out_as_it_was_then(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    if file_format != "iceberg":
        pytest.skip("Delta's RESTORE is a commit upon the others")
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 1_000), wanted)
    first = current_version(spark, file_format, table)
    rows(spark, 1_000, 1_100).writeTo(table.sql).append()
    build(spark, rows(spark, 0, 2_000), wanted)
    assert last_whole_layout(spark, file_format, table).rows == 2_000
    spark.sql(f"CALL spark_catalog.system.set_current_snapshot('{table}', {first})").collect()
    assert current_version(spark, file_format, table) == first
    assert last_whole_layout(spark, file_format, table).rows == 1_000
