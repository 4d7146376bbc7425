from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout.keys import key_of
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats import collect
from dbt_zorder.stats.footers import footer_stats
from dbt_zorder.stats.summary import add_up, gather, summarize
from tests.unit.stats.test_footers import DATA, EXACT, wrote

COLUMNS = ["id", "a.b", "st.in ner", "n", "day", "d", "i"]


@pytest.fixture(scope="module")
def table(spark: SparkSession, database: str) -> str:
    spark.sql(
        f"""CREATE TABLE {database}.t USING parquet AS SELECT /*+ repartition_by_range(4, id) */ id,
        concat('k', lpad(id % 10, 3, '0')) `a.b`, named_struct('in ner', id) st, cast(null as int) n,
        date_add(DATE'2024-01-01', cast(id as int)) day, if(id = 0, double('NaN'), id) d, INTERVAL '1' DAY * id i
        FROM range(400)"""
    )
    return f"{database}.t"


def test_figures_are_those_of_the_stats(spark: SparkSession, table: str) -> None:
    schema = spark.table(table).schema
    names = ["`a.b`" if name == "a.b" else "st.`in ner`" if "st" in name else name for name in COLUMNS]
    summary = summarize(collect(spark, table, names), [key_of(c) for c in resolve_all(names, schema)])
    assert (summary.files, summary.rows) == (4, 400)
    assert summary.bytes > 0
    assert list(summary.point_query_files) == COLUMNS
    assert summary.point_query_files["id"] == 1
    assert summary.point_query_files["st.in ner"] == 1
    assert summary.point_query_files["a.b"] == 4
    assert summary.point_query_files["n"] == 0
    assert summary.point_query_files["day"] == 1
    assert summary.point_query_files["i"] == 1
    assert 1 <= summary.point_query_files["d"] < 2.5


def test_no_files_have_figures_too(spark: SparkSession, table: str) -> None:
    columns = [key_of(c) for c in resolve_all(["id"], spark.table(table).schema)]
    summary = summarize(collect(spark, table, ["id"]).where("false"), columns)
    assert (summary.files, summary.rows, summary.bytes, summary.point_query_files) == (0, 0, 0, {"id": 0.0})


def test_rows_that_nobody_counted_are_none(spark: SparkSession, table: str) -> None:
    keys = [key_of(c) for c in resolve_all(["id"], spark.table(table).schema)]
    stats = collect(spark, table, ["id"]).withColumn("row_count", f.lit(None).cast("bigint"))
    summary = summarize(stats, keys)
    assert (summary.files, summary.rows, summary.point_query_files) == (4, 0, {"id": 0.0})


def test_what_is_in_memory_is_gathered_as_spark_gathers_it(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(f"SELECT *, repeat('ü', 200) || text AS long_text FROM ({DATA})")
    columns = resolve_all([*EXACT, "s.x.`y z`", "a.b", "long_text"], frame.schema)
    stats = footer_stats(spark, wrote(frame, tmp_path / "t"), columns, "v1")
    assert stats is not None
    keys = [key_of(column) for column in columns]
    assert {key.carrier for key in keys} == {
        "bigint",
        "decimal(9,4)",
        "decimal(18,6)",
        "timestamp_ntz",
        "string",
        "binary",
    }
    for local in (stats, replace(stats, rows=stats.rows[:0])):
        found, by_spark = gather(local, keys), gather(local.frame(), keys)
        assert found.schema.types == by_spark.schema.types
        assert found.schema.names == by_spark.schema.names
        assert found.to_pylist() == by_spark.to_pylist()
        assert add_up(found, keys) == add_up(by_spark, keys)
