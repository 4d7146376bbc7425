from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.cells import count_cells
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.layout.batches import group_cells, one_file_layout, regroup
from dbt_zorder.layout.spec import LayoutSpec

QUERY = "SELECT pmod(hash(id), 1000) AS a, pmod(hash(id, 1), 1000) AS b, id % 4 AS p FROM range({})"


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_neighbours_and_hold_about_what_they_should(seed: int) -> None:
    random = np.random.default_rng(seed)
    trees = int(random.integers(1, 5))
    counts = random.integers(0, 40, trees * 256) * random.integers(0, 2, trees * 256)
    groups, largest = group_cells(counts, trees, 300.0)
    assert (np.diff(groups) >= 0).all()
    assert (np.diff(groups) <= 1).all()
    rows = np.bincount(groups, counts)
    assert largest == rows.max() <= 450
    assert (rows[:-1] + rows[1:] > 300).all()


def test_little_is_one_group_and_one_full_cell_cannot_be_cut() -> None:
    assert group_cells(np.asarray([1, 2, 3, 4]), 1, 7.0)[0].tolist() == [0, 0, 0, 0]
    groups, largest = group_cells(np.asarray([0, 900, 0, 1]), 1, 10.0)
    assert largest >= 900
    assert len(groups) == 4
    assert group_cells(np.zeros(4, dtype=np.int64), 2, 1.0)[1] == 0


def test_no_group_is_empty() -> None:
    for counts in ([0, 20], [20, 0], [0, 20, 0, 0], [0, 20, 20, 0]):
        groups, largest = group_cells(np.asarray(counts), 1, 10.0)
        assert np.bincount(groups, counts).min() == 20, counts
        assert largest == 20


def test_a_batch_goes_through_the_tree_of_its_table(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    table = spark.sql(QUERY.format(8000))
    layout = plan_layout(table, LayoutSpec(by=["a", "b"], files=8))
    batch = spark.sql(QUERY.format(4000))
    counts = count_cells(batch, layout)
    fetched = count_cells(batch, layout, batch.count())
    assert counts is not None
    assert fetched is not None
    assert counts.tolist() == fetched.tolist()
    with monkeypatch.context() as patch:
        patch.setattr(DataFrame, "groupBy", None)
        uncounted = count_cells(batch, layout, small=True)
    assert uncounted is not None
    assert uncounted.tolist() == fetched.tolist()
    assert fetched.dtype == np.int64
    assert counts.sum() == 4000
    found = regroup(layout, counts, 1000.0)
    assert found is not None
    assert found.rows == 4000
    parts = [rows for rows in apply_layout(batch, found).rdd.glom().collect() if rows]
    assert len(parts) == found.files
    assert found.files in (4, 5), "eight files may be slabs of 3, 3 and 2"
    assert all(500 <= len(rows) <= 1500 for rows in parts)
    boxes = [(min(r.a for r in rows), max(r.a for r in rows)) for rows in parts]
    assert sum(high - low for low, high in boxes) < 4 * 600, "files are boxes, not everything"
    one = regroup(layout, counts, 10_000.0)
    assert one is not None
    assert one.files == 1
    assert repr(one_file_layout(layout, 4000, 99)) == repr(one)


@pytest.mark.parametrize(("levels", "cells"), [(0, 1), (1, 2), (3, 8), (99, None)])
@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_a_batch_of_one_file_is_ordered_by_as_many_levels_as_it_needs(
    spark: SparkSession, levels: int, cells: int | None, curve: str
) -> None:
    layout = plan_layout(spark.sql(QUERY.format(8000)), LayoutSpec(by=["a", "b"], files=8, curve=curve))
    batch = spark.sql(QUERY.format(500))
    (part,) = [rows for rows in apply_layout(batch, one_file_layout(layout, 500, levels)).rdd.glom().collect() if rows]
    assert sorted(part) == sorted(batch.collect())
    if curve == "zorder" and cells is not None:
        assert one_file_layout(layout, 500, levels).first_file.tolist() == [0] * cells
        ends = part[: len(part) // 8], part[-len(part) // 8 :]  # of eight files, each within one of two slabs
        boxes = [[(min(column), max(column)) for column in ([r.a for r in rows], [r.b for r in rows])] for rows in ends]
        apart = [one[1] < other[0] or other[1] < one[0] for one, other in zip(*boxes, strict=True)]
        assert any(apart) is (levels > 0), "the ends of the file lie on either side of the first cut"
        narrow = [sum(high - low < 900 for low, high in box) for box in boxes]
        assert (narrow == [2, 2]) is (levels > 1), "and are corners of the space"


def test_a_tree_that_is_too_coarse_says_so(spark: SparkSession) -> None:
    layout = plan_layout(spark.sql("SELECT 1 AS a, 2 AS b"), LayoutSpec(by=["a", "b"], files=1))
    counts = count_cells(spark.sql(QUERY.format(1000)), layout)
    assert counts is not None
    assert regroup(layout, counts, 100.0) is None


def test_partitions_have_trees_of_their_own_and_unknown_ones_none(spark: SparkSession) -> None:
    layout = plan_layout(spark.sql(QUERY.format(4000)), LayoutSpec(by=["a"], files=2, partition_by=["p"]))
    counts = count_cells(spark.sql(QUERY.format(400)), layout)
    assert counts is not None
    assert counts.reshape(4, -1).sum(axis=1).tolist() == [100, 100, 100, 100]
    assert count_cells(spark.sql(QUERY.format(10).replace("id % 4", "id % 5")), layout) is None


def test_no_rows_are_counted_as_none(spark: SparkSession) -> None:
    layout = plan_layout(spark.sql(QUERY.format(100)), LayoutSpec(by=["a"], files=2))
    counts = count_cells(spark.sql(QUERY.format(0)), layout)
    assert counts is not None
    assert counts.sum() == 0
