from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName, describe
from dbt_zorder.errors import BuildError
from dbt_zorder.save import save_table
from dbt_zorder.table.clock import listening
from tests.support import same_rows

QUERY = "SELECT id, pmod(hash(id), 100) AS a FROM range({})"


def test_a_table_that_is_replaced_keeps_its_format(spark: SparkSession, table: TableName, file_format: str) -> None:
    rows = spark.sql(QUERY.format(1000))
    done = save_table(rows, str(table), ["id", "a"], files=4, file_format=file_format)
    assert (done.rows, done.files, done.appended) == (1000, 4, None)
    done = save_table(spark.table(table.sql).where("id < 600"), str(table), ["a", "id"], "overwrite", files=2)
    assert (done.rows, done.files) == (600, 2)
    assert same_rows(spark.table(table.sql), rows.where("id < 600"))
    info = describe(spark, table)
    assert info is not None
    assert info.provider == file_format


def test_rows_that_others_commit_meanwhile_are_not_lost(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    rows = spark.sql(QUERY.format(1000))
    save_table(rows, str(table), ["id", "a"], files=4, file_format=file_format)

    def meddle(phase: str) -> None:
        if phase == "write":
            spark.sql(f"INSERT INTO {table.sql} SELECT id, 1 FROM range(5)")

    with listening(meddle), pytest.raises(BuildError, match="Another run changed"):
        save_table(spark.table(table.sql), str(table), ["a", "id"], "overwrite", files=2)
    assert spark.table(table.sql).count() == 1005


def test_a_table_that_others_make_meanwhile_is_not_replaced(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    def meddle(phase: str) -> None:
        if phase == "write":
            spark.sql(f"CREATE TABLE {table.sql} USING {file_format} AS SELECT 1 AS id")

    with listening(meddle), pytest.raises(BuildError, match=f"^{table}: Another run has made the table meanwhile"):
        save_table(spark.sql(QUERY.format(1000)), str(table), ["id", "a"], files=4, file_format=file_format)
    assert spark.table(table.sql).count() == 1
