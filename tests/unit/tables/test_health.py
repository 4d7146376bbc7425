from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.health import FileFacts, TableHealth, health_of

MB = 1_000_000
ORDERS = TableName("shop", "orders")


def facts(ranges: Sequence[tuple[int | None, int | None]], size: int = 100_000, folders: int = 1) -> FileFacts:
    """Return the facts of files of one size, with these ranges of the column ``k``."""
    names = [f"file:/t/p={number % folders}/{number}.parquet" for number in range(len(ranges))]
    files = pa.table(
        {
            "file_path": pa.array(names, pa.string()),
            "file_size": pa.array([size] * len(ranges), pa.int64()),
            "row_count": pa.array([10] * len(ranges), pa.int64()),
            "min_value0": pa.array([low for low, _ in ranges], pa.int64()),
            "max_value0": pa.array([high for _, high in ranges], pa.int64()),
            "null_count0": pa.array([0] * len(ranges), pa.int64()),
        }
    )
    return FileFacts(files, [key_of(ResolvedColumn(("k",), t.LongType()))])


def measured(found: FileFacts, command: str = "", **settings: int | str) -> TableHealth:
    by = [key.column.name for key in found.keys]
    return health_of(ORDERS, found, LayoutSpec(by=by, **settings), command)  # type: ignore[arg-type]


def test_many_small_files_would_become_few() -> None:
    found = measured(facts([(0, 99)] * 1000), command="dbt run-operation zorder_optimize")
    assert (found.files, found.bytes, found.rows, found.small_files) == (1000, 100 * MB, 10_000, 1000)
    assert found.files_after == 1
    assert found.columns["k"].depth == 1000
    assert found.columns["k"].overlaps == 999
    assert found.gains
    assert str(found).split("\n") == [
        "shop.orders: 1,000 files of 100.0 MB, 10,000 rows, 1,000 below a quarter of 134.2 MB",
        "  a point query on k reads 1,000.0 of 1,000 files (100%), 1,000 at most; a file overlaps 999.0 others",
        "  A rewrite would make about 1 file; a point query would read about 1.0 (100%) on k.",
        "  dbt run-operation zorder_optimize",
    ]


def test_files_of_the_target_size_that_share_no_value_gain_nothing() -> None:
    found = measured(facts([(number * 10, number * 10 + 9) for number in range(8)], size=64 * MB), file_size="64MB")
    assert (found.small_files, found.columns["k"].depth, found.columns["k"].after) == (0, 1, 1)
    assert not found.gains
    assert str(found).endswith("A rewrite would gain little.")


def test_files_of_the_target_size_that_overlap_gain_by_order() -> None:
    found = measured(facts([(0, 99)] * 8, size=64 * MB), file_size="64MB")
    assert (found.small_files, found.columns["k"].depth, found.columns["k"].after) == (0, 8, 1)
    assert found.gains


def test_the_only_file_of_a_partition_is_not_small() -> None:
    found = measured(facts([(0, 9)] * 8, folders=8))
    assert (found.small_files, found.files_after) == (0, 8)
    assert not found.gains
    assert measured(facts([(0, 9)] * 9, folders=8)).small_files == 2


def test_batches_since_the_last_whole_layout_are_drift() -> None:
    whole = Summary(4, 40, 400_000, {"k": 1.0})
    found = measured(replace(facts([(0, 99)] * 6), built=whole), files=4)
    assert (found.new_files, found.new_bytes, found.target_bytes) == (2, 200_000, 100_000)
    assert found.columns["k"].at_build == 1.0
    assert "2 files of 200.0 kB came by batches since the last whole layout, when a point query read k 1.0 of 4" in str(
        found
    )
    assert measured(facts([(0, 99)] * 6)).new_files is None


def test_few_new_bytes_are_no_reason_to_repeat_a_layout() -> None:
    weak = replace(facts([(0, 99)] * 20), built=Summary(19, 190, 1_900_000, {"k": 2.0}))
    assert not measured(weak, files=19).gains  # a build gives such a column no better ranges
    assert measured(replace(weak, built=Summary(17, 170, 1_700_000, {"k": 2.0})), files=17).gains


def test_the_depth_after_a_rewrite_is_measured_as_that_of_today() -> None:
    ranges = [(number, 1_000 - number) for number in range(20)]
    found = facts(ranges)
    # the bounds of such files give half the depth, in the figures of the build as well
    built = Summary(20, 200, 2_000_000, {"k": 10.5})
    health = measured(replace(found, built=built), files=20)
    assert health.columns["k"].depth == pytest.approx(20, abs=0.5)
    assert health.columns["k"].after == pytest.approx(20, abs=0.5)


def test_files_without_bounds_and_without_statistics_are_counted() -> None:
    found = facts([(0, 9), (None, None), (10, 19)])
    counts = pa.array([10, None, 10], pa.int64())
    health = measured(replace(found, files=found.files.set_column(2, "row_count", counts)))
    assert (health.without_stats, health.columns["k"].unbounded, health.columns["k"].depth) == (1, 1, 2)
    assert "1 without statistics" in str(health)
    assert "1 without bounds" in str(health)


def test_no_columns_leave_the_sizes() -> None:
    found = measured(replace(facts([(0, 9)] * 3), keys=[]))
    assert (found.files, found.columns) == (3, {})
    assert "No column is examined" in str(found)


def test_an_empty_table_has_a_health() -> None:
    found = measured(facts([]))
    assert (found.files, found.small_files, found.columns["k"].depth, found.gains) == (0, 0, 0, False)


@pytest.mark.parametrize("name", ["files", "gains", "text", "columns"])
def test_figures_are_plain_values_for_macros(name: str) -> None:
    found = measured(facts([(0, 9)] * 3)).to_dict()
    assert name in found
    assert found["columns"]["k"]["depth"] == 3
