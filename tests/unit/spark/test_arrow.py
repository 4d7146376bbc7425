from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.spark.arrow import collect_arrow, first_rows, frame_of, takes_arrow
from tests.support import settings

VALUES = """
    SELECT i, timestamp'1883-11-18 12:03:57.000001' AS at, date'1582-10-04' AS day,
      if(i = 2, NULL, named_struct('t', timestamp_ntz'2024-03-31 02:30:00', 'd', -1.50bd, 's', 'ü', 'b', X'00ff')) AS s
    FROM VALUES (1), (2), (3) AS v(i)
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows_come_back_as_they_were(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    assert takes_arrow(spark)
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        spark.sql(VALUES).write.parquet(str(tmp_path / "t"))
        rows = spark.read.parquet(str(tmp_path / "t"))
        back = frame_of(spark, collect_arrow(rows), rows.schema)
        assert back.select("*").schema == rows.schema
        assert back.exceptAll(rows).isEmpty()
        assert rows.exceptAll(back).isEmpty()
        plan = str(back.select("i")._jdf.queryExecution().optimizedPlan())
        assert plan.startswith("LocalRelation")


def test_a_value_of_another_type_is_refused(spark: SparkSession) -> None:
    schema = t.StructType([t.StructField("i", t.LongType())])
    with pytest.raises((pa.ArrowException, TypeError)):
        frame_of(spark, pa.table({"i": ["one"]}), schema)


def test_no_rows_are_collected_with_their_types(spark: SparkSession) -> None:
    table = collect_arrow(spark.sql("SELECT 1L AS i, 'x' AS s").where("i > 1"))
    assert (table.num_rows, table.schema.names) == (0, ["i", "s"])
    assert table.schema.field("i").type == pa.int64()


def test_first_rows_are_those_of_the_first_splits_with_their_types(spark: SparkSession) -> None:
    columns = "id, spark_partition_id() AS split, CAST(id AS DECIMAL(38, 2)) AS d, INTERVAL '1' DAY AS i"
    query = f"SELECT {columns} FROM range(0, 640, 1, 64)"
    found = first_rows(spark.sql(query), 25)
    assert found.schema == spark.sql(query).schema
    rows = found.collect()
    assert sorted(row["id"] for row in rows) == list(range(25))
    assert max(row["split"] for row in rows) == 2
    assert first_rows(spark.range(0), 5).count() == 0
