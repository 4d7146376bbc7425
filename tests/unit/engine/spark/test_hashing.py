from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.spark.hashing import row_hash
from dbt_zorder.layout.partitions import partition_hash


def test_what_can_be_hashed_of_a_struct_counts(spark: SparkSession) -> None:
    frame = spark.sql("SELECT named_struct('id', id, 'in', struct(id % 3 AS r, map(1, id) AS m)) AS s FROM range(900)")
    found = {row[0]: row[1] for row in frame.groupBy(f.expr(row_hash(frame.schema, 4))).count().collect()}
    assert sorted(found) == [0, 1, 2, 3]
    assert min(found.values()) > 150


def test_a_table_of_nothing_but_maps_is_one_file(spark: SparkSession) -> None:
    frame = spark.sql("SELECT map(1, id) AS m FROM range(9)")
    assert frame.selectExpr(row_hash(frame.schema, 4)).distinct().count() == 1


def test_partitions_with_null_in_one_column_or_the_other_are_told_apart(spark: SparkSession) -> None:
    values = "('a', NULL), (NULL, 'a'), (NULL, NULL), ('a', 'a'), ('a', ''), ('', 'a')"
    frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(p, q)")
    assert frame.selectExpr(partition_hash(["p", "q"])).distinct().count() == 6
    assert frame.selectExpr(partition_hash(["p"])).distinct().count() == 3
