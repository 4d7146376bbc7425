from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.metastore import replace_entry
from dbt_zorder.tables.parquet import swap
from dbt_zorder.tables.parquet.swap import Definition, publish
from tests.support import same_rows
from tests.unit.tables.parquet.versions import V1, V2


def published(spark: SparkSession, table: TableName, path: Path, columns: str) -> list[str]:
    """Publish a version that is parted by all columns but ``a`` and ``b``, and return their names."""
    frame = spark.sql(f"SELECT 1 AS a, {columns}")
    parts = [name for name in frame.columns if name not in "ab"]
    frame.write.partitionBy(*parts).parquet(str(path))
    publish(spark, table, Definition(frame.schema, parts), str(path))
    assert same_rows(spark.table(table.sql), frame)
    info = describe(spark, table)
    assert info is not None
    assert list(info.partition_columns) == parts
    return parts


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("timestamp_ntz'2026-01-01' AS p", "2 AS b, timestamp_ntz'2026-01-01' AS p"),
        ("1L AS p", "timestamp_ntz'2026-01-01' AS p"),
        ("timestamp_ntz'2026-01-01' AS p", "date'2026-01-01' AS p"),
        ("INTERVAL '1' YEAR AS p", "INTERVAL '1' DAY AS q"),
        ("timestamp_ntz'2026-01-01' AS p, 1 AS q", "2 AS b, timestamp_ntz'2026-01-01' AS p, 1 AS q"),
        ("1 AS q, timestamp_ntz'2026-01-01' AS p", "2 AS b, 1 AS q, timestamp_ntz'2026-01-01' AS p"),
        ("timestamp'2026-01-01' AS p", "1.5BD AS p, timestamp_ntz'2026-01-01' AS q"),
        ("INTERVAL '1' DAY AS p, 'x' AS q", "'x' AS q, INTERVAL '1' DAY AS p"),
    ],
    ids=[
        "another column",
        "to a type of Spark's",
        "from one",
        "by another column",
        "beside one it knows",
        "behind one it knows",
        "a known one becomes two",
        "in another order",
    ],
)
def test_partitions_of_types_that_hive_does_not_know(
    spark: SparkSession, table: TableName, tmp_path: Path, first: str, then: str
) -> None:
    """Spark leaves their columns out of the entry that it reads, and then Hive refuses to have it changed."""
    for version, columns in ((V1, first), (V2, then)):
        parts = published(spark, table, tmp_path / version, columns)
        assert spark.table(table.sql).where(f"{parts[-1]} IS NOT NULL").count() == 1
    tables = spark.sql(f"SHOW TABLES IN `{table.schema}` LIKE '{table.identifier}*'")
    assert [row.tableName for row in tables.collect()] == [table.identifier.lower()]


@pytest.mark.parametrize(
    "parts",
    ["1 AS P", "timestamp_ntz'2026-01-01' AS P", "1 AS Day, 'x' AS shop", "timestamp_ntz'2026-01-01' AS At, 1 AS Q"],
)
def test_names_in_upper_case_are_replaced_in_one_call(
    spark: SparkSession, table: TableName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str
) -> None:
    replaced: list[bool] = []

    def noted(*args: Any) -> bool:
        replaced.append(replace_entry(*args))
        return replaced[-1]

    monkeypatch.setattr(swap, "replace_entry", noted)
    for version, columns in ((V1, parts), (V2, f"2 AS b, {parts}")):
        published(spark, table, tmp_path / version, columns)
    assert replaced == [True]
