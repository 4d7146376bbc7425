from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.engine.spark.lookup_tables import int_table, long_table


def test_tables_come_back(spark: SparkSession) -> None:
    ints, longs, wrapped = spark.sql(
        f"SELECT {int_table([0, -1, 2**31 - 1])}, {long_table([7])}, {long_table([1, 2**64 - 1], signed=True)}"
    ).collect()[0]
    assert (ints, longs, wrapped) == ([0, -1, 2**31 - 1], [7], [1, -1])
    assert spark.sql(f"SELECT {int_table([None, 3, None])}").collect()[0][0] == [None, 3, None]
    assert spark.sql(f"SELECT typeof({int_table([7])})").collect()[0][0] == "array<int>"
