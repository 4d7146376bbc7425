from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, LongType

from dbt_zorder.engine.local import place as finder
from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.place import CellFinder, rows_of_files
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import TemporaryColumns, add_node, apply_layout
from dbt_zorder.layout.batches import one_file_layout
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.columns import ResolvedColumn, resolve
from tests.unit.layout.frames import mixed

COLUMNS = ["a", "s", "d", "n", "b", "t", "id", "flag"]
REPEATED = """
    SELECT pmod(hash(id), 40) AS whole, concat('k', pmod(hash(id, 1), 40)) AS text, id FROM range(20000)
"""


def planned(spark: SparkSession, query: str, spec: LayoutSpec) -> tuple[Layout, Fetched]:
    frame = spark.sql(query).coalesce(1)
    parts = [resolve(name, frame.schema) for name in spec.partition_by]
    found = fetch(frame, keys_for(frame, spec), 1 << 26, partition_by=parts)
    assert found is not None
    return plan_layout(frame, spec, found), found


@pytest.mark.parametrize("parts", [(), ("p",), ("p", "flag")])
@pytest.mark.parametrize("by", [COLUMNS[:2], COLUMNS[2:5], COLUMNS[5:7], ["d", "a"], ["s", "id"]])
def test_cells_are_those_that_spark_descends_to(spark: SparkSession, by: list[str], parts: tuple[str, ...]) -> None:
    layout, found = planned(spark, mixed(3000), LayoutSpec(by=by, files=9, partition_by=parts))
    # also of cuts that were saved, in which no two NaN are one object
    saved = layout_from_json(layout_to_json(layout), spark.sql(mixed(1)).schema)
    frame = spark.sql(mixed(3000)).coalesce(1)
    names = TemporaryColumns.beside(frame)
    nodes = collect_arrow(add_node(frame, layout, names).select(names.node)).column(0).to_numpy()
    for one in (layout, saved):
        assert one is not None
        assert np.array_equal(CellFinder.by(one).cells(found.keys), nodes)


@pytest.mark.parametrize("by", [["a", "s"], ["id"], ["d"], ["s"], ["a", "flag", "t"]])
def test_every_row_is_in_one_file_in_order_of_its_cell(spark: SparkSession, by: list[str]) -> None:
    layout, found = planned(spark, mixed(3000), LayoutSpec(by=by, files=6))
    files = [*rows_of_files(found.keys, layout).values()]
    assert len(files) == layout.files == 6
    assert sorted(np.concatenate(files).tolist()) == list(range(3000))
    cells = CellFinder.by(layout).cells(found.keys)
    assert all((np.diff(cells[file]) >= 0).all() for file in files)
    assert max(map(len, files)) < 1.5 * 3000 / 6


@pytest.mark.parametrize("column", ["id", "d", "s", "n", "a"])
def test_one_column_alone_is_sorted_as_spark_sorts(spark: SparkSession, column: str) -> None:
    layout, found = planned(spark, mixed(2000), LayoutSpec(by=[column], files=4))
    frame = spark.sql(mixed(2000)).coalesce(1)
    wanted = [row[0] for row in frame.select(column).orderBy(f.col(column).asc_nulls_first()).collect()]
    rows = np.concatenate([*rows_of_files(found.keys, layout).values()])
    assert repr(found.rows[column].take(pa.array(rows)).to_pylist()).replace("-0.0", "0.0") == repr(wanted).replace(
        "-0.0", "0.0"
    )


def test_equal_values_of_a_cell_lie_together(spark: SparkSession) -> None:
    layout, found = planned(spark, REPEATED, LayoutSpec(by=["whole", "text"], files=4))
    assert layout.runs

    def changes(one: Layout) -> int:
        ranks = [found.keys[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ("k0", "k1")]
        files = rows_of_files(found.keys, one).values()
        return sum(int((np.diff(rank[file]) != 0).sum()) for rank in ranks for file in files)

    assert changes(layout) < 0.4 * changes(replace(layout, runs=()))


def test_what_no_column_parts_is_shared_out_evenly(spark: SparkSession) -> None:
    query = "SELECT if(id % 10 < 7, 5, id) AS a, 1 AS b, id FROM range(4000)"
    layout, found = planned(spark, query, LayoutSpec(by=["a", "b"], files=8))
    assert (layout.file_count > 1).any()
    files = [*rows_of_files(found.keys, layout).values()]
    assert len(files) == 8
    assert sorted(np.concatenate(files).tolist()) == list(range(4000))
    assert min(map(len, files)) > 0.7 * 500


def test_a_batch_that_is_one_file_is_ordered_by_the_trees_first_levels(spark: SparkSession) -> None:
    layout, found = planned(spark, mixed(3000), LayoutSpec(by=["a", "id"], files=4))
    whole = one_file_layout(layout, 3000, 3)
    (file,) = rows_of_files(found.keys, whole).values()
    cells = CellFinder.by(layout).cells(found.keys) >> (len(layout.levels) - 3)
    assert (np.diff(cells[file]) >= 0).all()
    assert len(np.unique(cells)) > 4


@pytest.mark.parametrize("files", [1, 3])
def test_no_rows_are_no_files(spark: SparkSession, files: int) -> None:
    for by in (["a", "id"], ["s"]):
        layout, _ = planned(spark, mixed(200), LayoutSpec(by=by, files=files))
        _, none = planned(spark, f"SELECT * FROM ({mixed(200)}) WHERE id < 0", LayoutSpec(by=by, files=files))
        assert rows_of_files(none.keys, layout) == {}


def test_the_files_of_partitions_are_their_own(spark: SparkSession) -> None:
    layout, found = planned(spark, mixed(3000), LayoutSpec(by=["a", "s"], files=3, partition_by=["p"]))
    files = [*rows_of_files(found.keys, layout).values()]
    assert len(files) == layout.files == 12
    assert sorted(np.concatenate(files).tolist()) == list(range(3000))
    assert [len(set(found.folder_of[file].tolist())) for file in files] == [1] * 12
    cells = CellFinder.by(layout).cells(found.keys)
    assert all((np.diff(cells[file]) >= 0).all() for file in files)


CURVES = [("hilbert", "rank"), ("hilbert", "bits"), ("zorder", "bits"), ("linear", "rank")]


@pytest.mark.parametrize("parts", [(), ("p",)])
@pytest.mark.parametrize("by", [COLUMNS[:2], COLUMNS[2:5], COLUMNS[5:8], ["d", "a"], COLUMNS])
@pytest.mark.parametrize(("curve", "encoding"), CURVES)
def test_other_curves_cut_and_order_rows_as_in_spark(
    spark: SparkSession, curve: str, encoding: str, by: list[str], parts: tuple[str, ...]
) -> None:
    spec = LayoutSpec(by=by, files=9, partition_by=parts, curve=curve, encoding=encoding)
    layout, found = planned(spark, mixed(3000), spec)
    saved = layout_from_json(layout_to_json(layout), spark.sql(mixed(1)).schema)
    assert saved is not None
    frame = spark.sql(mixed(3000)).coalesce(1)
    names = TemporaryColumns.beside(frame)
    nodes = collect_arrow(add_node(frame, layout, names).select(names.node)).column(0).to_numpy()
    written = apply_layout(frame, layout).select("id", f.spark_partition_id().alias("f"))
    wanted: dict[int, list[int]] = {}
    for row in written.collect():
        wanted.setdefault(row.f, []).append(row.id)
    for one in (layout, saved):
        finder = CellFinder.by(one)
        assert np.array_equal(finder.cells(found.keys), nodes)
        files = [found.rows["id"].take(pa.array(rows)).to_pylist() for rows in rows_of_files(found.keys, one).values()]
        if not parts:
            assert files == list(wanted.values()), "equal ones as they came"
        assert sorted(map(sorted, files)) == sorted(map(sorted, wanted.values()))


def test_of_long_text_so_much_counts_as_is_sampled(spark: SparkSession) -> None:
    """Behind its first 256 bytes the columns that follow part the rows."""
    query = "SELECT id, repeat('x', 256) || id AS s, pmod(hash(id), 3000) AS a FROM range(3000)"
    layout, found = planned(spark, query, LayoutSpec(by=["s", "a"], files=8, curve="linear"))
    frame = spark.sql(query).coalesce(1)
    names = TemporaryColumns.beside(frame)
    nodes = collect_arrow(add_node(frame, layout, names).select(names.node)).column(0).to_numpy()
    assert np.array_equal(CellFinder.by(layout).cells(found.keys), nodes)
    files = rows_of_files(found.keys, layout)
    assert [len(rows) for rows in files.values()] == pytest.approx([375] * 8, rel=0.1)
    texts = found.rows["s"].to_pylist()
    assert all([texts[row] for row in rows] == sorted(texts[row] for row in rows) for rows in files.values())


def test_keys_of_many_rows_are_made_some_at_a_time(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for curve, encoding in CURVES:
        layout, found = planned(spark, mixed(500), LayoutSpec(by=["a", "s"], files=3, curve=curve, encoding=encoding))
        whole = CellFinder.by(layout).sort_key(found.keys)
        with monkeypatch.context() as patch:
            patch.setattr(finder, "_SLICE_ROWS", 64)
            assert CellFinder.by(layout).sort_key(found.keys).equals(whole)
            assert len(CellFinder.by(layout).sort_key(found.keys[:0])) == 0


Levels = list[dict[int, list[Any]]]
VALUES = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
TEXTS = st.one_of(st.none(), st.binary(max_size=3), st.binary(max_size=20))


@given(st.lists(st.tuples(VALUES, TEXTS), max_size=60), st.lists(st.tuples(VALUES, TEXTS), min_size=1, max_size=12))
def test_a_row_goes_right_where_its_key_is_at_or_above_the_cut(
    rows: list[tuple[int | None, bytes | None]], cuts: list[tuple[int | None, bytes | None]]
) -> None:
    """Against one row and one level at a time."""
    levels: Levels = [
        {0: [a] * (1 << depth)} if depth % 2 else {1: [b] * (1 << depth)} for depth, (a, b) in enumerate(cuts)
    ]
    numbers, texts = (pa.array([row[n] for row in rows], kind) for n, kind in enumerate([pa.int64(), pa.binary()]))
    keys = pa.table({"k0": numbers, "k1": texts})
    layout = _layout(levels)
    wanted = []
    for a, b in rows:
        node = 0
        for depth, (low, text) in enumerate(cuts):
            value, cut = (a, low) if depth % 2 else (b, text)
            node = 2 * node + int(value is not None and cut is not None and value >= cut)  # type: ignore[operator]
        wanted.append(node)
    assert CellFinder.by(layout).cells(keys).tolist() == wanted


def _layout(levels: Levels) -> Layout:

    keys = [key_of(ResolvedColumn((name,), kind)) for name, kind in (("a", LongType()), ("b", BinaryType()))]
    cells = 1 << len(levels)
    first, ones = np.arange(cells, dtype=np.int32), np.ones(cells, dtype=np.int32)
    return Layout(keys, levels, len(levels), first, ones, cells, (), np.zeros(1, np.int64), 0)


def test_more_threads_find_the_same_cells(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, found = planned(spark, mixed(3000), LayoutSpec(by=["s", "d"], files=9, partition_by=("p",)))
    monkeypatch.setattr(finder, "_PART_ROWS", 7)
    assert np.array_equal(CellFinder.by(layout).cells(found.keys, 3), CellFinder.by(layout).cells(found.keys))
    none = found.keys.slice(0, 0)
    assert CellFinder.by(layout).cells(none, 3).shape == (0,)
