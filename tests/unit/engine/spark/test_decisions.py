from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.curve.tree import descend
from dbt_zorder.engine.spark.decisions import MOST_FILES, boundaries_allowed, suits_decisions
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.engine.spark.spark_plan import SparkPlan, for_spark
from dbt_zorder.layout.plan import make_plan
from dbt_zorder.layout.spec import LayoutSpec
from tests.support import settings
from tests.unit.layout.frames import mixed

MIXED = mixed(4000)


@pytest.fixture(autouse=True)
def for_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_zorder.engine.spark.decisions.VALUES_A_DECISION", 1)


def planned(df: DataFrame, spec: LayoutSpec) -> SparkPlan:
    return for_spark(make_plan(df, spec))


def laid_out(df: DataFrame, spec: LayoutSpec) -> SparkLayout:
    return SparkLayout.beside(planned(df, spec).layout)


def placed(df: DataFrame, plan: SparkPlan) -> list[list[int]]:
    """The ids of each file's rows, in their order there."""
    assert suits_decisions(df, SparkLayout.beside(plan.layout))
    return [[row["id"] for row in rows] for rows in apply_layout(df, plan.layout).select("id").rdd.glom().collect()]


def expected(df: DataFrame, plan: SparkPlan) -> tuple[dict[int, int], dict[int, int]]:
    """The file of each row, and its place there, by the scalar references; the sample must be of all rows."""
    forest, sample = plan.forest, plan.sample
    assert plan.layout.rows == len(sample.ranks)
    assert plan.grid is not None
    cells = descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), sample.ranks, sample.partitions)
    ids = [row["id"] for row in df.select("id").collect()]  # the sample is in this order
    files = dict(zip(ids, forest.first_file[cells].tolist(), strict=True))
    return files, dict(zip(ids, plan.grid.keys(sample.ranks).tolist(), strict=True))


def check(df: DataFrame, spec: LayoutSpec) -> None:
    plan = planned(df, spec)
    assert (plan.forest.file_count == 1).all(), "a hash is at work"
    found = placed(df, plan)
    files, places = expected(df, plan)
    assert sorted(row for rows in found for row in rows) == sorted(files)
    for file, rows in enumerate(found):
        assert {files[row] for row in rows} <= {file}
        here = [places[row] for row in rows]
        assert here == sorted(here)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "by", [["s", "a"], ["d", "t"], ["n", "b", "flag"], ["a", "s", "d", "t", "n", "b", "flag", "id"]]
)
def test_every_type_goes_where_the_references_say(spark: SparkSession, ansi: str, by: Sequence[str]) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        check(spark.sql(MIXED).coalesce(1), LayoutSpec(by=by, files=7))


@pytest.mark.parametrize("files", [1, 2, 12, 40])
def test_any_number_of_files(spark: SparkSession, files: int) -> None:
    check(spark.sql(MIXED).coalesce(1), LayoutSpec(by=["s", "a"], files=files))


@pytest.mark.parametrize(
    "value",
    [
        "IF(id % 2 = 0, 9223372036854775807, -9223372036854775808)",
        "IF(id % 2 = 0, double('Infinity'), -double('Infinity'))",
        "IF(id % 2 = 0, double('NaN'), NULL)",
        "concat('it''s \\\\ \u00e4\u20ac ', id)",
        "unhex(lpad(hex(id), 16, '0'))",
        "make_dt_interval(id)",
        "make_ym_interval(0, int(id))",
        "array(id, 1)",
        "named_struct('x', date_add(date'0001-01-01', int(id)))",
    ],
)
def test_values_at_the_edges_of_their_types(spark: SparkSession, value: str) -> None:
    check(spark.sql(f"SELECT id, {value} AS v, id % 13 AS w FROM range(900)").coalesce(1), LayoutSpec(["v", "w"], 5))


def test_one_column_is_sorted_by_itself(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, (id * 7919) % 1000 AS v FROM range(1000)").coalesce(1)
    plan = planned(frame, LayoutSpec(by=["v"], files=4))
    ids = [row for rows in placed(frame, plan) for row in rows]
    assert [id_ * 7919 % 1000 for id_ in ids] == list(range(1000))


def test_rows_that_no_column_parts_are_spread_by_a_hash(spark: SparkSession) -> None:
    frame = spark.sql("SELECT IF(id < 900, 7, id) AS v, id % 2 AS w, id FROM range(1000)")
    plan = planned(frame, LayoutSpec(by=["v", "w"], files=6))
    assert (plan.forest.file_count > 1).any()
    sizes = [len(rows) for rows in placed(frame, plan)]
    assert sum(sizes) == 1000
    assert len(sizes) == 6
    assert min(sizes) > 60


@pytest.mark.parametrize("query", ["SELECT 1 AS v, 2 AS w FROM range(50)", "SELECT id AS v, 2 AS w FROM range(0)"])
def test_rows_without_a_difference_and_no_rows(spark: SparkSession, query: str) -> None:
    frame = spark.sql(query)
    layout = laid_out(frame, LayoutSpec(by=["v", "w"], files=4))
    assert apply_layout(frame, replace(layout, rows=10**9)).count() == layout.rows


def test_nothing_is_added_to_the_rows_that_are_shuffled(spark: SparkSession) -> None:
    frame = spark.sql(MIXED)
    plan = apply_layout(frame, laid_out(frame, LayoutSpec(by=["s", "a"], files=7)))._jdf.queryExecution()
    assert "__zorder" not in plan.optimizedPlan().toString()
    assert plan.optimizedPlan().output().toString() == plan.analyzed().output().toString()


@pytest.mark.parametrize(
    "spec",
    [
        LayoutSpec(by=["id"], files=MOST_FILES + 1),
        LayoutSpec(by=["s", "a"], files=2, partition_by=["p"]),
        LayoutSpec(by=["s", "a"], files=4, curve="hilbert"),
        LayoutSpec(by=["s", "a"], files=4, curve="linear"),
        LayoutSpec(by=["s", "a"], files=4, encoding="bits"),
        LayoutSpec(by=["id", "t"], files=4, page_rows=5),  # which go together
    ],
)
def test_what_decisions_do_not_fit_takes_the_descent(spark: SparkSession, spec: LayoutSpec) -> None:
    frame = spark.sql(MIXED)
    layout = laid_out(frame, spec)
    assert not suits_decisions(frame, layout)
    assert sorted(row[0] for row in apply_layout(frame, layout).select("id").collect()) == list(range(4000))


def test_a_small_table_does_not_pay_for_what_is_compiled_anew_unless_it_is_wide(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.sql(MIXED)
    spec = LayoutSpec(by=["s", "a"], files=40)
    layout = laid_out(frame, spec)
    assert (suits_decisions(frame, layout), boundaries_allowed(frame, layout)) == (True, 30 + 9 + 9 * 4000 - 40)
    monkeypatch.setattr("dbt_zorder.engine.spark.decisions.VALUES_A_DECISION", 9 * 1000)
    layout = laid_out(frame, spec)
    assert (suits_decisions(frame, layout), boundaries_allowed(frame, layout)) == (False, 30 + 9 + 4 - 40)
    wide = frame.select("*", *(f.lit(number).alias(f"c{number}") for number in range(71)))
    layout = laid_out(wide, spec)
    assert (suits_decisions(wide, layout), boundaries_allowed(wide, layout)) == (True, 30 + 80 + 35 - 40)


def test_few_files_are_decided_however_small_the_table(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_zorder.engine.spark.decisions.VALUES_A_DECISION", 150_000)
    frame = spark.sql(MIXED).select("id", "s", "a")
    plan = planned(frame, LayoutSpec(by=["s", "a"], files=16))
    assert plan.grid is not None
    assert sum(map(len, plan.grid.cuts)) <= 14
    assert not suits_decisions(frame, laid_out(frame, LayoutSpec(by=["s", "a"], files=20)))
