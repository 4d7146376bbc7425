from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_zorder.stats.values import value_bounds

NAN = math.nan


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("values", "low", "high", "nulls"),
    [
        ([2.5, -1.5, 0.0], -1.5, 2.5, 0),
        ([2.5, None, NAN], 2.5, NAN, 1),
        ([None, NAN, NAN], NAN, NAN, 1),
        ([-math.inf, math.inf], -math.inf, math.inf, 0),
        ([None, None], None, None, 2),
        ([-0.0, 0.0], 0.0, 0.0, 0),
    ],
)
def test_bounds_are_by_sparks_order(
    tmp_path: Path, kind: pa.DataType, values: list[float | None], low: float, high: float, nulls: int
) -> None:
    leaf = pa.array(values, kind)
    inner = pa.StructArray.from_arrays([leaf], ["x y"], mask=pa.array([False] * len(values)))
    file = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"n": range(len(values)), "a.b": leaf, "s": inner}), file, row_group_size=1)
    for found in value_bounds(file, [("s", "x y"), ("a.b",)]):
        for bound, wanted in zip(found[:2], (low, high), strict=True):
            assert bound == wanted or (math.isnan(bound) and math.isnan(wanted))
        assert found[2] == nulls


def test_a_name_that_begins_with_a_dot_is_no_path(tmp_path: Path) -> None:
    file = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"s": pa.array([{".x": 1.0, "x": 100.0}])}), file)
    assert value_bounds(file, [("s", ".x"), ("s", "x")]) == [(1.0, 1.0, 0), (100.0, 100.0, 0)]


def test_a_parent_that_is_null_is_counted(tmp_path: Path) -> None:
    inner = pa.array([{"x": 1.0}, None, {"x": None}], pa.struct([("x", pa.float64())]))
    file = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"s": inner}), file)
    assert value_bounds(file, [("s", "x")]) == [(1.0, 1.0, 2)]
