from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.save import save_table
from tests.support import same_rows, unique


@pytest.mark.slow
def test_5000_partitions_are_a_folder_each_with_a_file_of_its_rows(
    spark: SparkSession, database: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dbt_zorder")
    table = TableName(database, unique("many"))
    query = "SELECT id, pmod(hash(id), 1000) AS a, CAST(id % 5000 AS INT) AS p FROM range(50000)"
    done = save_table(spark.sql(query), str(table), ["a", "id"], partition_by="p")
    assert ("is laid out and written here" in caplog.text) == (way != "by Spark")
    assert (done.rows, done.files) == (50_000, 5_000)
    info = describe(spark, table)
    assert info is not None
    found = Path(info.location.removeprefix("file:")).glob("p=*/*.parquet")
    assert Counter(path.parent.name for path in found) == Counter(f"p={number}" for number in range(5000))
    assert same_rows(spark.table(table.sql), spark.sql(query))
