"""What PySpark prints of errors that pruning catches, or lets through."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt_zorder.pruning import query, scan
from tests.unit.spark.test_messages import records

T = "pruning_unit.t"


def test_a_path_is_read_without_a_word(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(9).write.parquet(f"{tmp_path}/p")
    logged = records(monkeypatch)
    name = f"parquet.`{tmp_path}/p`"
    assert scan(spark, name, "id = 3").count() == query(spark, f"select * from {name} where id = 3").count() == 1
    assert not logged


@pytest.mark.parametrize(
    "sql",
    [
        f"select * from {T} where (a, b) in ((42, 1))",
        f"select nothing from {T} where a = 5",
        f"select nothing from {T} where a = :x",
        "select * from pruning_unit.no_such where a = 5",
        f"selec * from {T}",
        f"select a from {T} where a = 5 and nothing(a)",
        f"insert into pruning_unit.no_such select a from {T} where a = 5",
        "drop table pruning_unit.no_such",
    ],
)
def test_what_spark_refuses_is_its_own_error_printed_once(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    logged = records(monkeypatch)
    args = {"x": 5} if ":x" in sql else None
    raised = []
    for run in (SparkSession.sql, query):
        with pytest.raises(PySparkException) as found:
            run(spark, sql, args)
        raised.append((type(found.value), str(found.value), len(logged)))
        logged.clear()
    assert raised[0] == raised[1]
