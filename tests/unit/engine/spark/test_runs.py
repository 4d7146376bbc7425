from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.curve.tree import descend
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.decisions import suits_decisions
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.engine.spark.runs import in_runs
from dbt_zorder.engine.spark.spark_plan import SparkPlan, for_spark
from dbt_zorder.layout.batches import one_file_layout
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.layout.plan import make_plan
from dbt_zorder.layout.runs import Run
from dbt_zorder.layout.spec import LayoutSpec
from tests.support import settings

TYPES = {
    "whole": "n",
    "hour": "timestamp_seconds(n * 3600)",
    "text": "CASE WHEN n % 9 > 0 THEN sha1(string(n)) END",
    "double": "IF(n % 5 = 0, double('NaN'), n / 3D)",
    "time": "timestamp_seconds(n * 98765)",
    "decimal": "CAST(n * 0.37 AS DECIMAL(20, 4))",
    "bytes": "unhex(md5(string(n)))",
    "list": "array(n, 1)",
    "lapse": "make_dt_interval(n)",
}


def lines(spark: SparkSession, types: Sequence[str] = ("whole", "text")) -> DataFrame:
    """Rows whose keys are all there ten times, far from each other."""
    keys = ", ".join(f"{TYPES[name]} AS {name}" for name in types)
    return spark.sql(f"SELECT id, {keys} FROM (SELECT id, pmod(id * 7919, 800) AS n FROM range(8000))").coalesce(1)


def runs_of(df: DataFrame, layout: Layout, types: Sequence[str]) -> list[int]:
    """In how many runs of equal keys the rows of each file come."""
    files = apply_layout(df.selectExpr("id", *types), layout).rdd.glom().collect()
    return [
        1 + sum(repr(one[1:]) != repr(other[1:]) for one, other in itertools.pairwise(rows)) for rows in files if rows
    ]


def cells_met(df: DataFrame, plan: SparkPlan) -> int:
    """How many pairs of a cell and what is equal in all keys there are; the sample must be of all rows."""
    forest, sample = plan.forest, plan.sample
    assert len(sample.ranks) == plan.layout.rows
    cells = descend(forest, sample.ranks, sample.partitions)
    if plan.grid is not None:
        files = descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), sample.ranks, sample.partitions)
        cells = files * (1 << 32) + plan.grid.keys(sample.ranks)
    return len({(cell, *ranks) for cell, ranks in zip(cells.tolist(), sample.ranks.tolist(), strict=True)})


@pytest.mark.parametrize("values_a_decision", [1, 1 << 40])
@pytest.mark.parametrize(
    "types", [["whole", "text"], ["hour", "whole"], ["double", "time", "decimal"], ["bytes", "list", "lapse"]]
)
def test_equal_rows_lie_together_in_their_cell(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, types: list[str], values_a_decision: int
) -> None:
    monkeypatch.setattr("dbt_zorder.engine.spark.decisions.VALUES_A_DECISION", values_a_decision)
    monkeypatch.setattr("dbt_zorder.engine.spark.decisions.AS_A_DESCENT", 0)
    # keys that go together read whole cells of a grid, which then is not taken
    monkeypatch.setattr("dbt_zorder.curve.grid._AS_GOOD", 100.0)
    monkeypatch.setattr("dbt_zorder.curve.grid._EACH_AS_GOOD", 100.0)
    df = lines(spark, types)
    plan = for_spark(make_plan(df, LayoutSpec(by=types, files=4)))
    assert suits_decisions(df, SparkLayout.beside(plan.layout)) == (values_a_decision == 1)
    assert len(plan.layout.runs) == len(types)
    # a hash of 16 bits or 10 may bring two values together, whose rows are then mixed
    assert sum(runs_of(df, plan.layout, types)) <= cells_met(df, plan) * (1.02 if len(types) == 2 else 1.25)
    assert sum(runs_of(df, replace(plan.layout, runs=()), types)) > 3 * cells_met(df, plan)


def test_the_order_of_cells_stays(spark: SparkSession) -> None:
    df = lines(spark)
    layout = plan_layout(df, LayoutSpec(by=["whole", "text"], files=4))
    assert layout.runs
    with_runs, without = (
        [{row.id for row in rows} for rows in apply_layout(df, one).rdd.glom().collect()]
        for one in (layout, replace(layout, runs=()))
    )
    assert with_runs == without  # the files


@pytest.mark.parametrize(("files", "open_files"), [(2, 0), (2, 1), (2, 2), (1, 2), (1, 3)])
def test_partitions_have_runs_where_rows_need_not_come_partition_by_partition(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], files: int, open_files: int
) -> None:
    """Behind another column Spark sorts by comparing, and would reckon the place anew at each comparison."""
    df = lines(spark).selectExpr("*", "id % 2 AS p")
    layout = plan_layout(df, LayoutSpec(by=["whole", "text"], files=files, partition_by=["p"]))
    assert layout.runs
    assert SparkLayout.beside(layout).tasks == (4 if files == 2 else 1), "small partitions share a task"
    clustered = apply_layout(df, layout, open_files)
    clustered.explain()
    (order,) = [line for line in capsys.readouterr().out.splitlines() if "Sort [" in line]
    by_one_key = open_files > (1 if files == 2 else 2)
    assert ("Sort [p#" in order) is not by_one_key
    assert ("hash(" in order) is by_one_key
    for rows in clustered.rdd.glom().collect():
        for part in (0, 1):
            ours = [(row.whole, row.text) for row in rows if row.p == part]
            runs = sum(one != other for one, other in itertools.pairwise(ours))
            assert (runs < len(ours) / 3) is by_one_key or not ours


def test_rows_that_differ_are_left_in_the_order_they_came_in(spark: SparkSession) -> None:
    df = spark.sql("SELECT id, id % 97 AS a, sha1(string(id)) AS b FROM range(4000)").coalesce(1)
    assert plan_layout(df, LayoutSpec(by=["a", "b"], files=4)).runs == []


def test_a_batch_has_the_runs_of_its_table(spark: SparkSession) -> None:
    df = lines(spark)
    layout = plan_layout(df, LayoutSpec(by=["whole", "text"], files=4))
    again = layout_from_json(json.loads(json.dumps(layout_to_json(layout))), df.schema)
    assert again is not None
    assert list(again.runs) == list(layout.runs) == [Run(1), Run(0, 1)]  # NULL stands for many texts
    batch = one_file_layout(again, 8000, 0)
    (runs,) = runs_of(df, batch, ["whole", "text"])
    assert runs <= 810


def test_a_layout_that_was_saved_before_there_were_runs_has_none(spark: SparkSession) -> None:
    df = lines(spark)
    found = layout_to_json(plan_layout(df, LayoutSpec(by=["whole", "text"], files=4)))
    del found["runs"]
    again = layout_from_json(found, df.schema)
    assert again is not None
    assert list(again.runs) == []


def test_one_integer_holds_both(spark: SparkSession) -> None:
    df = spark.range(100).selectExpr("id AS place", "id % 7 AS a", "string(id % 3) AS b")
    keys: list[Key] = list(plan_layout(df, LayoutSpec(by=["a", "b"], files=1)).keys)
    for bits, runs in [(7, [Run(0), Run(1)]), (31, [Run(0, 1), Run(1)]), (47, [Run(1), Run(0, 3)]), (31, [Run(1)])]:
        sql = in_runs("place", bits, keys, runs)
        rows = df.selectExpr("place", f"{sql} AS key").collect()
        assert df.selectExpr(sql).dtypes[0][1] == "bigint"
        assert [row.place for row in sorted(rows, key=lambda row: row.key)] == list(range(100))
        assert all(0 <= row.key < 1 << 63 for row in rows)
    assert in_runs("place", 31, keys, []) == "place"
    assert in_runs("place", 60, keys, [Run(0)]) == "place"
    assert in_runs("place", 48, keys, [Run(0), Run(1)]) == in_runs("place", 48, keys, [Run(0)])


def test_the_unit_of_whole_numbers() -> None:
    def unit(values: list[int], carrier: str = "bigint") -> int:
        return Run.of(0, carrier, pa.array(values, type=pa.int64())).unit

    assert unit([3, 4, 9]) == 1
    assert unit([7, 17, 47]) == 10
    assert unit([-(1 << 63), 0, (1 << 63) - 1]) == 1
    assert unit([-(1 << 63), (1 << 63) - 1]) == 0  # farther apart than any number of Spark's
    assert unit([-7_200_000_000, 0, 3_600_000_000]) == 3_600_000_000
    assert unit([5]) == unit([]) == 0
    assert unit([3, 4, 9], "decimal(9,0)") == 0


def test_whole_numbers_keep_their_order_in_a_cell_and_null_and_extremes_a_place(spark: SparkSession) -> None:
    values = (
        "VALUES (0L, 40L), (0L, 20L), (0L, 90L), (1L, NULL), (1L, -9223372036854775808L), (2L, 9223372036854775807L)"
    )
    df = spark.sql(f"SELECT place, a, 'x' AS b FROM {values} AS (place, a)")
    keys = list(plan_layout(df, LayoutSpec(by=["a", "b"], files=1)).keys)
    for unit, ansi in itertools.product((1, 10), ("true", "false")):
        with settings(spark, {"spark.sql.ansi.enabled": ansi}):
            rows = df.orderBy(f.expr(in_runs("place", 31, keys, [Run(0, unit), Run(1)]))).collect()
        assert [row.place for row in rows] == [0, 0, 0, 1, 1, 2]
        assert [row.a for row in rows[:3]] == [20, 40, 90]
