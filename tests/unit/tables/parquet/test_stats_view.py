from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.stats_view import stats_table
from tests.unit.tables.parquet.batches import made, rows, stats_rows

pytestmark = pytest.mark.usefixtures("way")


@pytest.mark.parametrize("state", ["dropped", "of an older version"])
def test_the_relation_over_the_stats_is_put_right_by_a_batch(spark: SparkSession, table: TableName, state: str) -> None:
    wanted = made(spark, table, rows(0, 400))
    if state == "dropped":
        spark.sql(f"DROP TABLE {stats_table(table).sql}")
    else:
        older = describe(spark, stats_table(table))
        assert older is not None
        made(spark, table, rows(0, 500))
        spark.sql(f"ALTER TABLE {stats_table(table).sql} SET LOCATION '{older.location}'")
    append(spark, spark.sql(rows(500, 550)), wanted)
    assert tuple(stats_rows(spark, table)[0]) == (5, 5, 450 if state == "dropped" else 550)
