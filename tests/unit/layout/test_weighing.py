from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout import plan as planning
from dbt_zorder.layout.plan import Plan, make_plan
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.layout.weighing import files_at, files_of_sample, resized, rows_by_file, weighed

ROWS = 20_000


def plan_of(spark: SparkSession, curve: str = "zorder", query: str = "", **spec: object) -> Plan:
    query = query or f"SELECT id, pmod(hash(id), 1000) AS a, pmod(hash(id, 1), 1000) AS b FROM range({ROWS})"
    wanted = LayoutSpec(by=["a", "b"], curve=curve, **{"file_size": 100_000, "row_bytes": 50.0, **spec})  # type: ignore[arg-type]
    return make_plan(spark.sql(query), wanted)


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_files_get_equal_shares_of_the_bytes(spark: SparkSession, curve: str) -> None:
    plan = plan_of(spark, curve)
    assert plan.layout.files == 10
    # rows with a large a take nine times as much
    high = np.asarray([plan.sample.ranks[files_of_sample(plan) == file, 0].mean() > 500 for file in range(10)])
    found = weighed(plan, np.where(high, 90.0, 10.0)[files_of_sample(plan)])
    expected = ROWS * (90 * high.mean() + 10 * (1 - high.mean())) / 100_000
    assert found.layout.files == round(expected)
    before = {row["id"]: number for number, part in enumerate(parts_of(plan)) for row in part}
    size_of_file = {number: 90 if high[number] else 10 for number in range(10)}
    # a Spark partition is a file, whatever its number: as many bytes in each, by the files of the plan before
    order = files_of_rows(plan, before)
    sizes = [sum(size_of_file[order[row["id"]]] for row in part) for part in parts_of(found)]
    assert sizes == pytest.approx([sum(sizes) / len(sizes)] * len(sizes), rel=0.1)
    assert sum(map(len, parts_of(found))) == ROWS


def parts_of(plan: Plan) -> list[list[dict[str, int]]]:
    """Return the rows of each file."""
    rows = apply_layout(plan.drawn.df, plan.layout).withColumn("part", f.spark_partition_id()).collect()
    found: list[list[dict[str, int]]] = [[] for _ in range(plan.layout.files)]
    for row in rows:
        found[row["part"]].append(row.asDict())
    return found


def files_of_rows(plan: Plan, part_of_id: dict[int, int]) -> dict[int, int]:
    """Return the number that the plan has for the file of each row: all rows were sampled, and a few tell of each."""
    assert len(plan.sample.ranks) == ROWS
    ids = [row["id"] for row in plan.drawn.df.select("id").collect()]
    # a sample of all rows comes as the query does
    return dict(zip(ids, files_of_sample(plan).tolist(), strict=True))


def test_equal_rows_give_the_same_plan_again(spark: SparkSession) -> None:
    plan = plan_of(spark)
    assert repr(weighed(plan, np.full(ROWS, 50.0)).layout) == repr(resized(plan, 50.0).layout) == repr(plan.layout)
    assert files_at(plan, 25.0) == resized(plan, 25.0).layout.files == 5
    assert rows_by_file(plan).tolist() == [2_000.0] * 10


def test_each_partition_has_files_by_its_own_bytes(spark: SparkSession) -> None:
    query = f"SELECT id, id % 100 AS a, id div 100 AS b, IF(id < 5000, 'few', 'many') AS p FROM range({ROWS})"
    plan = plan_of(spark, query=query, partition_by=["p"])
    few = int(np.argmin(plan.drawn.counts))
    assert plan.layout.files_of_trees.tolist() == [(2, 8)[number] if few == 0 else (8, 2)[number] for number in (0, 1)]
    assert sorted(rows_by_file(plan).tolist()) == [1875.0] * 8 + [2500.0] * 2
    tree = np.repeat([0, 1], plan.layout.files_of_trees)
    found = weighed(plan, np.where(tree == few, 200.0, 25.0)[files_of_sample(plan)])
    assert found.layout.files_of_trees[few] == 10
    assert found.layout.files_of_trees[1 - few] == 4
    assert found.layout.rows == ROWS


def test_a_partition_of_no_sampled_row_is_one_file(spark: SparkSession) -> None:
    query = f"SELECT id, id % 100 AS a, id div 100 AS b, id < 10 AS p FROM range({ROWS})"
    plan = plan_of(spark, query=query, partition_by=["p"])
    small = int(np.argmin(plan.drawn.counts))
    others = plan.sample.partitions != small
    sample = replace(plan.sample, ranks=plan.sample.ranks[others], partitions=plan.sample.partitions[others])
    without = replace(plan, drawn=replace(plan.drawn, sample=sample))
    found = weighed(without, np.full(len(sample.ranks), 50.0))
    assert found.layout.files_of_trees[small] == 1


def test_a_value_that_fills_files_is_shared_out(spark: SparkSession) -> None:
    query = f"SELECT id, IF(id < 9000, 7, id) AS a, 1 AS b FROM range({ROWS})"
    plan = plan_of(spark, query=query)
    heavy = np.bincount(files_of_sample(plan), minlength=10).argmax()
    found = weighed(plan, np.where(np.arange(10) == heavy, 200.0, 20.0)[files_of_sample(plan)])
    assert found.layout.file_count.max() >= 9_000 * 200 / 100_000 - 2


def test_too_many_files_are_an_error(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(spark)
    monkeypatch.setattr(planning, "MOST_FILES", 20)
    with pytest.raises(ConfigError, match="would have 100 files by a file size of 100000"):
        weighed(plan, np.full(ROWS, 500.0))
