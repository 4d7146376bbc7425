from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.curve.tree import descend
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.engine.spark.literals import key_array
from dbt_zorder.layout.keys import KeyValue
from dbt_zorder.layout.plan import make_plan
from dbt_zorder.layout.spec import LayoutSpec
from tests.support import needs_spark_4, settings
from tests.unit.layout.frames import mixed

MIXED = mixed(4000)


def placed(df: DataFrame, spec: LayoutSpec) -> list[int]:
    """Send rows down the descent as the reference goes; return their ids."""
    plan = make_plan(df, spec)
    layout, forest, sample = plan.layout, plan.forest, plan.sample
    assert layout.rows == len(sample.ranks), "the reference needs a sample of all rows"
    assert (forest.file_count == 1).all(), "a hash is at work"
    cells = descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), sample.ranks, sample.partitions)
    assert layout.reached[cells].all()
    ids = [row["id"] for row in df.select("id").collect()]  # the sample is in this order
    wanted = dict(zip(ids, forest.first_file[cells].tolist(), strict=True))
    rows = apply_layout(df, layout).select("id", f.spark_partition_id().alias("file")).collect()
    assert [row["file"] for row in rows] == [wanted[row["id"]] for row in rows]

    # inside a file, rows go by their cell of the last level
    last = dict(zip(ids, descend(forest, sample.ranks, sample.partitions).tolist(), strict=True))
    for file in range(forest.files):
        cells_here = [last[row["id"]] for row in rows if row["file"] == file]
        assert cells_here == sorted(cells_here)
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize(
    "by", [["a"], ["s", "a"], ["d", "t"], ["n", "b", "flag"], ["a", "s", "d", "t", "n", "b", "flag", "id"]]
)
def test_spark_takes_every_row_where_the_reference_does(spark: SparkSession, by: Sequence[str]) -> None:
    assert placed(spark.sql(MIXED).coalesce(1), LayoutSpec(by=by, files=7)) == list(range(4000))


@pytest.mark.parametrize("files", [1, 2, 3, 5, 12])
def test_two_levels_a_step_whether_even_or_odd(spark: SparkSession, files: int) -> None:
    spec = LayoutSpec(by=["s", "a"], files=files, page_rows=10**6)
    assert placed(spark.sql(MIXED).coalesce(1), spec) == list(range(4000))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_partitions_have_trees_of_their_own(spark: SparkSession, ansi: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        frame = spark.sql(MIXED).coalesce(1)
        assert len(placed(frame, LayoutSpec(by=["s", "t"], files=3, partition_by=["p"]))) == 4000


@pytest.mark.parametrize(
    "taken", ["__zorder_key0", "__zorder_node", "__ZORDER_SLOT", "__zorder_part", "__zorder", "__zorder__node"]
)
def test_a_column_may_be_called_like_a_temporary_one(spark: SparkSession, taken: str) -> None:
    frame = spark.sql(f"SELECT id AS `{taken}`, id % 5 AS b FROM range(100)")
    result = apply_layout(frame, plan_layout(frame, LayoutSpec(by=[taken, "b"], files=4)))
    assert result.columns == [taken, "b"]
    assert sorted(row[0] for row in result.collect()) == list(range(100))


def test_a_partition_that_was_not_counted_loses_no_row(spark: SparkSession) -> None:
    sampled = spark.sql("SELECT id, id % 3 AS p FROM range(60)")
    layout = plan_layout(sampled, LayoutSpec(by=["id"], files=2, partition_by=["p"]))
    more = spark.sql("SELECT id, id % 5 AS p FROM range(100)")
    assert sorted(row[0] for row in apply_layout(more, layout).collect()) == list(range(100))


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 5, 8, 9])
def test_the_search_for_a_partition_finds_each(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr("dbt_zorder.engine.spark.spark_plan._BUNDLE_BYTES", 0)  # a Spark partition for each
    frame = spark.sql(f"SELECT id, id % {partitions} AS p FROM range(90)")
    layout = plan_layout(frame, LayoutSpec(by=["id"], files=1, partition_by=["p"]))
    rows = apply_layout(frame, layout).select("p", f.spark_partition_id().alias("file")).distinct().collect()
    assert len(rows) == partitions
    assert len({row["file"] for row in rows}) == partitions


def test_the_search_names_each_partition_twice_at_most(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(values: Sequence[KeyValue | None], carrier: str) -> str:
        asked.append(len(values))
        return key_array(values, carrier)

    frame = spark.sql("SELECT id, id % 1000 AS p FROM range(3000)")
    layout = plan_layout(frame, LayoutSpec(by=["id"], files=1, partition_by=["p"]))
    monkeypatch.setattr("dbt_zorder.engine.spark.descent.key_array", counted)
    apply_layout(frame, layout)
    assert sum(asked) <= 2 * 1000 + len(asked)


@pytest.mark.parametrize(
    "extra",
    [
        "map(1, 2)",
        pytest.param("parse_json('{}')", marks=needs_spark_4),
        "array(map(1, 2))",
        "named_struct('m', map(1, 2))",
        pytest.param("make_interval(1)", marks=needs_spark_4),  # PySpark 3.5 cannot read its type
    ],
)
def test_rows_that_only_a_hash_can_part_may_hold_what_cannot_be_hashed(spark: SparkSession, extra: str) -> None:
    frame = spark.sql(f"SELECT 1 AS a, id, {extra} AS x FROM range(2000)")
    layout = plan_layout(frame, LayoutSpec(by=["a"], files=4))
    sizes = np.bincount(
        [row[0] for row in apply_layout(frame, layout).select(f.spark_partition_id()).collect()], minlength=4
    )
    assert sizes.sum() == 2000
    assert sizes.min() > 400


def test_nothing_but_equal_rows_without_a_hash_is_kept_too(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a FROM range(50)")
    assert apply_layout(frame, plan_layout(frame, LayoutSpec(by=["a"], files=4))).count() == 50
