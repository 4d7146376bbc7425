from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local import row_groups as module
from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.local.row_groups import RowGroups
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.spec import LayoutSpec
from tests.unit.engine.local.test_place import planned
from tests.unit.layout.frames import mixed

ROWS = 4000


def never() -> pa.Table:
    raise AssertionError


@pytest.mark.parametrize("by", [["a", "s"], ["id", "t"], ["id"], ["s"], ["n"], ["d"], ["flag"]], ids="-".join)
@pytest.mark.parametrize(("files", "partition_by"), [(1, ()), (5, ()), (1, ("p",))])
def test_parts_of_a_file_follow_each_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, by: list[str], files: int, partition_by: tuple[str, ...]
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 1000)
    layout, found = planned(spark, mixed(ROWS), LayoutSpec(by=by, files=files, partition_by=partition_by))
    finder, keys = CellFinder.by(layout), found.keys
    some = np.random.default_rng(0).choice(ROWS, ROWS // 4, replace=False)
    parts = RowGroups.of(finder, 8000, lambda: keys.take(pa.array(some)))
    cells = finder.cells(keys)

    def in_order(rows: Rows) -> Rows:
        return rows[finder.order(keys.take(pa.array(rows)), cells[rows])]

    order, places = parts.split_by_file(keys, cells)
    assert sorted(order.tolist()) == list(range(ROWS))
    assert [0, *(here.stop for here in places.values())] == [*(here.start for here in places.values()), ROWS]
    by_file, of_file = finder.split_by_file(cells)
    counts = {part: here.stop - here.start for part, here in places.items()}
    assert np.repeat([parts.file(part) for part in counts], [*counts.values()]).tolist() == of_file.tolist()
    # sorted part by part they are as sorted file by file
    by_parts = [row for here in places.values() for row in in_order(order[here])]
    by_files = [row for file in np.unique(of_file) for row in in_order(by_file[of_file == file])]
    if layout.curve is None:
        assert np.array_equal(cells[by_parts], cells[by_files])
    else:
        one, other = (keys.column(0).take(pa.array(rows)).to_pylist() for rows in (by_parts, by_files))
        assert list(map(str, one)) == list(map(str, other))
    if by in (["id", "t"], ["id"], ["n"]):
        assert max(counts.values()) < 2 * ROWS / (8 * layout.files)


def test_small_files_are_one_part_each(spark: SparkSession) -> None:
    layout, found = planned(spark, mixed(ROWS), LayoutSpec(by=["a", "s"], files=5))
    finder = CellFinder.by(layout)
    parts = RowGroups.of(finder, module.PART_BYTES, never)
    assert parts.of_file == 1
    order, places = parts.split_by_file(found.keys, finder.cells(found.keys))
    assert list(places) == [parts.file(part) for part in places] == [0, 1, 2, 3, 4]
    assert len(order) == ROWS


def test_of_a_column_of_nothing_there_is_one_part(spark: SparkSession) -> None:
    layout, found = planned(spark, "SELECT id, CAST(NULL AS INT) AS a FROM range(100)", LayoutSpec(by=["a"], files=1))
    parts = RowGroups.of(CellFinder.by(layout), 1 << 40, lambda: found.keys)
    assert parts.of_file == 1
    assert list(parts.split_by_file(found.keys, CellFinder.by(layout).cells(found.keys))[1]) == [0]


def test_the_rows_of_some_files_are_in_parts_as_all_are(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 1000)
    layout, found = planned(spark, mixed(ROWS), LayoutSpec(by=["a", "s"], files=5))
    finder = CellFinder.by(layout)
    parts, cells = RowGroups.of(finder, 4000, never), finder.cells(found.keys)
    order, places = parts.split_by_file(found.keys, cells)
    some, chosen = parts.split_by_file(found.keys, cells, only=[1, 3])
    assert list(chosen) == [part for part in places if parts.file(part) in (1, 3)]
    for part, here in chosen.items():
        assert np.array_equal(some[here], order[places[part]])
