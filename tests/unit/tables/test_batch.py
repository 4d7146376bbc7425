from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ColumnError
from dbt_zorder.request import check
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch, describe_existing, naming_left_out, rows_after, schemas
from dbt_zorder.tables.two_step_swap import previous_of
from tests.unit.tables.parquet.batches import made, request, rows


def test_what_is_no_table_any_more_takes_no_batch(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(BuildError, match="is not there any more"):
        describe_existing(spark, table)
    assert describe(spark, table) is None
    spark.sql(f"CREATE VIEW {table.sql} AS {rows(0, 10)}")
    with pytest.raises(BuildError, match="is a view by now"):
        describe_existing(spark, table)
    assert spark.table(table.sql).count() == 10


def test_a_table_that_is_aside_just_now_is_waited_for(spark: SparkSession, table: TableName) -> None:
    made(spark, table, rows(0, 100))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {previous_of(table).sql}")
    assert describe_existing(spark, table).provider == "parquet"


def test_a_column_that_the_table_lacks_is_said_to_be_left_out(spark: SparkSession, table: TableName) -> None:
    made(spark, table, rows(0, 10))
    df = spark.sql(f"SELECT *, 1 AS extra FROM ({rows(0, 10)})")
    wanted = request(table, by=["extra"])
    assert schemas(spark, df, wanted, Batch())[1].names == spark.table(table.sql).columns
    kept = df.drop("extra")
    why = r"no column 'extra'.* does not have the query's new columns \(extra\), which on_schema_change 'ignore' leaves"
    with pytest.raises(ColumnError, match=why), naming_left_out(df, kept.schema, wanted, Batch()):
        check(kept, wanted)
    with pytest.raises(ColumnError) as raised, naming_left_out(df, df.schema, wanted, Batch()):
        check(kept, wanted)
    assert "leaves out" not in str(raised.value)


def test_rows_after_a_batch_are_those_of_other_partitions_and_its_own(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100), partition_by=["p"])
    batch = spark.sql(rows(200, 210)).where("p = 1")
    with rows_after(spark, batch, batch.schema, wanted, Batch(overwrite=True)) as state:
        found = {row["p"]: row["count"] for row in state.groupBy("p").count().collect()}
    before = {row["p"]: row["count"] for row in spark.table(table.sql).groupBy("p").count().collect()}
    assert found == {**before, 1: batch.count()}
    with rows_after(spark, batch, batch.schema, wanted, Batch()) as state:
        assert state.count() == 100 + batch.count()
