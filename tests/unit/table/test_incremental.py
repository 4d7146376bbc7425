from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName, describe
from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.table import incremental as module
from dbt_zorder.table.incremental import Batch, IncrementReport, increment
from dbt_zorder.table.request import BuildRequest
from tests.support import checksum, unique
from tests.unit.table.batches import made, request, rows, same


@pytest.fixture
def table(database: str) -> TableName:
    return TableName(database, unique("t"))


def go(spark: SparkSession, query: str, wanted: BuildRequest, **batch: Any) -> IncrementReport:
    return increment(spark, spark.sql(query), wanted, Batch(**batch))


def test_the_first_run_builds_and_the_next_appends(spark: SparkSession, table: TableName) -> None:
    wanted = request(table)
    first = go(spark, rows(0, 100), wanted)
    assert first.appended is None
    second = go(spark, rows(100, 120), wanted)
    assert second.appended is not None
    assert second.version == first.version
    assert second.table is not None
    assert second.table.rows == 120


def test_where_nothing_can_be_renamed_a_version_is_built(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100))
    monkeypatch.setattr(module, "has_client", lambda _: False)
    assert go(spark, rows(100, 120), wanted).appended is None
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))


def test_overwriting_a_table_that_dbt_spark_made_keeps_its_other_partitions(
    spark: SparkSession, table: TableName
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 100, 'nullif(id % 3, 0)')}")
    batch = f"SELECT * FROM ({rows(100, 130, 'nullif(id % 3, 0)')}) WHERE p IS NULL"
    go(spark, batch, request(table, partition_by=("p",)), overwrite=True)
    old = f"SELECT * FROM ({rows(0, 100, 'nullif(id % 3, 0)')}) WHERE p IS NOT NULL"
    assert same(spark.table(table.sql), spark.sql(f"{old} UNION ALL {batch}"))
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, list(info.partition_columns)) == ("EXTERNAL", ["p"])


def test_what_is_wrong_is_found_first(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    before = checksum(spark.table(table.sql))
    with pytest.raises(ColumnError, match="no column 'b'"):
        go(spark, rows(0, 9), request(table, by=("b",)))
    assert checksum(spark.table(table.sql)) == before
    other = TableName(table.schema, unique("csv"))
    spark.sql(f"CREATE TABLE {other.sql} USING csv AS {rows(0, 3)}")
    with pytest.raises(ZorderError, match="is a csv table"):
        go(spark, rows(0, 9), BuildRequest(other, wanted.spec))
