from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, properties
from dbt_zorder.tables.batch import Batch
from tests.conftest import FORMATS_HERE
from tests.formats.tables import increment, last_whole_layout, request, rows
from tests.support import same_rows


@pytest.mark.skipif(FORMATS_HERE != ["delta"], reason="Iceberg has no constraints")
def test_an_incremental_run_that_replaces_all_rows_keeps_what_was_altered(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, files=2, properties={"owner_is": "us"})
    spark.sql(f"CREATE TABLE {table.sql} (id LONG NOT NULL, a INT, s STRING, p INT) USING delta")
    for clause in (
        "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'mine' = '1', 'source_url' = 'here')",
        "ADD CONSTRAINT few CHECK (a < 5000)",
        "ADD CONSTRAINT known CHECK (s IS NOT NULL)",
    ):
        spark.sql(f"ALTER TABLE {table.sql} {clause}")
    less = rows(spark, 0, 100).selectExpr("id", "CAST(a AS INT) AS a", "s", "p")
    whole = Batch(overwrite=True, on_schema_change="sync_all_columns")

    def constraints() -> set[str]:
        return {name for name in properties(spark, table) if name.startswith("delta.constraints.")}

    for _ in range(2):
        report = increment(spark, lambda: less, wanted, whole, "never")
        assert report.built is not None
        assert same_rows(spark.table(table.sql), less)
        assert not spark.table(table.sql).schema["id"].nullable
        assert {"owner_is": "us", "mine": "1", "delta.enableChangeDataFeed": "true"}.items() <= (
            properties(spark, table).items()
        )
        assert constraints() == {"delta.constraints.few", "delta.constraints.known"}
        assert last_whole_layout(spark, file_format, table).rows == 100
    for bad in ("CAST(id + 9999 AS INT) AS a", "a"):
        ids = "id" if bad != "a" else "CAST(NULL AS LONG) AS id"
        with pytest.raises(Exception, match=r"(?i)constraint"):
            increment(spark, lambda: less.selectExpr(ids, bad, "s", "p"), wanted, whole, "never")  # noqa: B023
        assert same_rows(spark.table(table.sql), less)
    other = less.selectExpr("id", "a", "p", "1 AS extra")
    increment(spark, lambda: other, request(table, file_format, by=("a",)), whole, "never")
    assert same_rows(spark.table(table.sql), other)
    assert constraints() == {"delta.constraints.few"}, "the other was of a column that is gone"
    assert {"mine": "1", "delta.enableChangeDataFeed": "true"}.items() <= properties(spark, table).items()
    detail = spark.sql(f"DESCRIBE DETAIL {table.sql}").first()
    assert detail is not None
    assert detail.properties["source_url"] == "here", "Spark hides it in its own list"
