"""The sequence that the writes of all formats share, by a commit that notes what is asked of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import RowSource, WriterFor, as_spark_writes
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.progress import Clock, report_phases_to
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.build import write, written

REQUEST = BuildRequest(TableName("default", "t"), LayoutSpec(by=["id"], files=2))


class Noted:
    """A commit of nothing; ``steps`` are those that it was asked for."""

    def __init__(
        self, df: DataFrame, path: str = "", *, by_spark: bool = False, counts_first: bool = False, empty: bool = False
    ):
        self.df, self.path, self.by_spark, self.counts_first, self.empty = df, path, by_spark, counts_first, empty
        self.steps: list[str] = []
        self.known: Any = None
        self.rows: Any = None

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        self.steps.append("open")
        return keys_for(self.df, REQUEST.spec), as_spark_writes(self.df.sparkSession, REQUEST, self.path)

    def lay_out(self, source: RowSource) -> Layout | None:
        self.steps.append("lay out")
        self.known = source.known
        return None if self.empty else plan_layout(source.query, REQUEST.spec, source.known)

    def write(self, source: RowSource, layout: Layout) -> None:
        self.steps.append("write")
        assert source.known is None, "the keys are freed before the write"
        self.rows = None if source.rows is None else weakref.ref(source.rows)

    def settle(self) -> None:
        gc.collect()
        freed = self.rows is None or self.rows() is None
        self.steps.append("settle" if freed else "settle with rows in memory")


def test_steps_come_in_their_order_and_rows_are_freed_before_the_table_is_looked_at(
    spark: SparkSession, tmp_path: Path
) -> None:
    df, clock, phases = spark.range(1000).toDF("id"), Clock(), list[str]()
    commit = Noted(df, f"file:{tmp_path}")
    with report_phases_to(phases.append), written(df, REQUEST, commit, clock) as done:
        assert done is not None
        assert (done.layout.files, done.counted) == (2, None)
    assert commit.rows is not None, "they were placed here"
    assert commit.steps == ["open", "lay out", "write", "settle"]
    assert phases == [*clock.seconds] == ["query", "sample", "write"]


def test_of_rows_that_spark_writes_the_query_that_was_counted_is_given_back(spark: SparkSession) -> None:
    df, never = spark.range(1000).toDF("id"), BuildRequest(REQUEST.table, REQUEST.spec, in_memory=0)
    commit = Noted(df)
    with written(df, never, commit, Clock()) as done:
        assert done is not None
        assert done.counted is not None
        assert done.counted.query is df
    assert commit.rows is None


def test_what_spark_writes_in_any_case_is_not_opened(spark: SparkSession) -> None:
    df, clock = spark.range(10).toDF("id"), Clock()
    commit = Noted(df, by_spark=True)
    assert write(df, REQUEST, commit, clock) is not None
    assert commit.steps == ["lay out", "write", "settle"]
    assert [*clock.seconds] == ["sample", "write"]


def test_where_nothing_is_laid_out_nothing_is_written(spark: SparkSession) -> None:
    df, clock = spark.range(10).toDF("id"), Clock()
    commit = Noted(df, empty=True)
    assert write(df, REQUEST, commit, clock) is None
    assert commit.steps == ["open", "lay out"]
    assert [*clock.seconds] == ["query", "sample"]


@pytest.mark.parametrize("counts_first", [True, False])
def test_a_kept_query_is_counted_first_only_where_that_is_asked_for(spark: SparkSession, counts_first: bool) -> None:
    df = spark.range(30).groupBy("id").count().select("id")  # it is kept for its aggregate
    never = BuildRequest(REQUEST.table, REQUEST.spec, in_memory=0)
    commit = Noted(df, counts_first=counts_first)
    write(df, never, commit, Clock())
    assert commit.known == (30 if counts_first else None)
