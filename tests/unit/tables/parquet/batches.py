"""What the tests of batches share: a table of ours, batches for it, and the check that pruning loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import pruning
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.listing import list_data
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.stats_view import stats_table

PREDICATES = ("a < 20 AND s = 'k3'", "id >= 400 OR a IS NULL")


def rows(first: int, end: int, parts: str = "id % 3") -> str:
    """A query of numbered rows; ``p`` is a partition column that may be NULL and hold anything."""
    return f"SELECT id, pmod(hash(id), 100) AS a, concat('k', id % 10) AS s, {parts} AS p FROM range({first}, {end})"


def request(table: TableName, *, files: int | None = 4, partition_by: Sequence[str] = (), **more: Any) -> BuildRequest:
    spec = LayoutSpec(
        by=more.pop("by", ("a", "s")),
        files=files,
        partition_by=partition_by,
        file_size=more.pop("file_size", "auto"),
        page_rows=more.pop("page_rows", None),
        curve=more.pop("curve", "zorder"),
    )
    return BuildRequest(table, spec, stats_columns=("id",), **more)


def made(spark: SparkSession, table: TableName, query: str, **more: Any) -> BuildRequest:
    """Build a table and return the request for it."""
    wanted = request(table, **more)
    build(spark, spark.sql(query), wanted)
    return replace(wanted)


def folder(spark: SparkSession, table: TableName) -> Path:
    info = describe(spark, table)
    assert info is not None
    return Path(info.location.removeprefix("file:"))


def files(spark: SparkSession, table: TableName) -> set[str]:
    return set(list_data(spark, str(folder(spark, table))))


def stats_rows(spark: SparkSession, table: TableName) -> list[Any]:
    return spark.sql(
        f"SELECT count(*), count(DISTINCT file_path), sum(row_count) FROM {stats_table(table).sql}"
    ).collect()


def assert_sound(spark: SparkSession, table: TableName) -> None:
    """Pruned = unpruned."""
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert pruning.sound(spark, table.sql, list(PREDICATES)) == []


def same(df: DataFrame, other: DataFrame) -> bool:
    names = sorted(other.columns)
    one, two = df.select(*names), other.select(*names)
    return one.exceptAll(two).isEmpty() and two.exceptAll(one).isEmpty()
