"""The bounds of a column in footers, and those of floats, which footers may lack."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_zorder.tables.lakehouse.footer_bounds import float_values, is_bounded, leaf_numbers, statistics_of

NAN = float("nan")


def written(path: Path, rows: pa.Table, **how: object) -> pq.FileMetaData:
    pq.write_table(rows, path / "f.parquet", row_group_size=2, **how)
    return pq.read_metadata(path / "f.parquet")


def bounded(footer: pq.FileMetaData, path: str) -> bool:
    return is_bounded(statistics_of(footer, leaf_numbers(footer).get(path, [])))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b", "c", "d"], True),
        (["a", "b", None, None], True),
        ([None, None, None, None], True),
        (["a", "b", "c", "x" * 5000], False),  # the greatest of the second group is left out
        (["x" * 5000, "y" * 5000, "c", "d"], False),
    ],
)
def test_bounds_are_those_of_all_row_groups_or_none(tmp_path: Path, values: list[str | None], expected: bool) -> None:
    for kind in (pa.string(), pa.binary()):
        assert bounded(written(tmp_path, pa.table({"s": pa.array(values, kind)})), "s") is expected


def test_a_leaf_without_statistics_or_of_no_such_name_has_no_bounds(tmp_path: Path) -> None:
    footer = written(tmp_path, pa.table({"a": [1, 2, 3], "b": [1, 2, 3]}), write_statistics=["a"])
    assert bounded(footer, "a")
    assert not bounded(footer, "b")
    assert not bounded(footer, "c")


def test_two_leaves_may_have_one_path(tmp_path: Path) -> None:
    rows = pa.table({"a": [{"b": "x"}, {"b": "y"}], "a.b": ["z" * 5000, "q"]})
    footer = written(tmp_path, rows)
    assert len(leaf_numbers(footer)["a.b"]) == 2
    assert not bounded(footer, "a.b")


def test_floats_are_read_with_their_nulls_and_without_nan(tmp_path: Path) -> None:
    nested = pa.array([{"x": 1.5}, None, {"x": NAN}, {"x": -2.0}, {"x": None}])
    written(tmp_path, pa.table({"st": nested, "all": pa.array([NAN] * 5, pa.float32())}))
    found = float_values(str(tmp_path / "f.parquet"), "st.x")
    assert (found.nulls, found.nans) == (2, 1)
    assert found.least is not None
    assert found.most is not None
    assert (found.least.as_py(), found.most.as_py()) == (-2.0, 1.5)
    found = float_values(str(tmp_path / "f.parquet"), "all")
    assert (found.nulls, found.nans, found.least, found.most) == (0, 5, None, None)
