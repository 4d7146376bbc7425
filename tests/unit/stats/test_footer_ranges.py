from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.footer_ranges import read_ranges
from tests.unit.stats.test_footers import encrypted


def key(kind: t.DataType, *path: str) -> Key:
    return key_of(ResolvedColumn(path or ("a",), kind))


def wrote(folder: Path, *tables: pa.Table, **options: Any) -> dict[str, int]:
    sizes = {}
    for number, table in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path, **options)
        sizes[path.as_uri()] = path.stat().st_size
    return sizes


def bounds(found: pa.Table) -> list[tuple[Any, Any, Any]]:
    return [(row["min_value0"], row["max_value0"], row["null_count0"]) for row in found.to_pylist()]


UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (t.IntegerType(), pa.array([3, 1, None], pa.int32()), (1, 3, 1)),
        (t.BooleanType(), pa.array([True, False]), (0, 1, 0)),
        (t.DoubleType(), pa.array([1.5, -2.0]), (-2.0, 1.5, 0)),
        (t.StringType(), pa.array(["b", "é"]), (b"b", "é".encode(), 0)),
        (t.BinaryType(), pa.array([b"\xff", b"a"]), (b"a", b"\xff", 0)),
        (t.DateType(), pa.array([dt.date(1970, 1, 11)]), (10, 10, 0)),
        (t.TimestampType(), pa.array([dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")),
         (1_000_000, 1_000_000, 0)),
        (t.DecimalType(9, 2), pa.array([Decimal("1.25")], pa.decimal128(9, 2)), (Decimal("1.25"), Decimal("1.25"), 0)),
        (t.StringType(), pa.array([None, None], pa.string()), (None, None, 2)),
    ],
)  # fmt: skip
def test_ranges_are_keys_as_the_stats_have_them(
    tmp_path: Path, kind: t.DataType, values: pa.Array, expected: tuple[Any, Any, int]
) -> None:
    sizes = wrote(tmp_path, pa.table({"a": values}))
    found = read_ranges(sizes, [key(kind)])
    assert found["file_path"].to_pylist() == list(sizes)
    assert found["file_size"].to_pylist() == list(sizes.values())
    assert found["row_count"].to_pylist() == [len(values)]
    assert bounds(found) == [expected]


def test_row_groups_count_together(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"a": [5, 1, 9, None]}), row_group_size=2)
    assert bounds(read_ranges(sizes, [key(t.LongType())])) == [(1, 9, 1)]


def test_what_a_footer_lacks_is_null(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"a": [5, 1]}), write_statistics=False)
    assert bounds(read_ranges(sizes, [key(t.LongType())])) == [(None, None, None)]
    found = read_ranges(sizes, [key(t.LongType(), "other")])
    assert bounds(found) == [(None, None, None)]
    assert found["row_count"].to_pylist() == [2]


def test_a_file_that_cannot_be_read_has_no_row_count(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    sizes = {(tmp_path / "torn.parquet").as_uri(): 16, "s3a://bucket/far.parquet": 9}
    found = read_ranges(sizes, [key(t.LongType())])
    assert found["row_count"].to_pylist() == [None, None]
    assert bounds(found) == [(None, None, None)] * 2


def test_an_encrypted_column_has_no_range(tmp_path: Path) -> None:
    encrypted(tmp_path / "secret.parquet")
    sizes = {(tmp_path / "secret.parquet").as_uri(): (tmp_path / "secret.parquet").stat().st_size}
    found = read_ranges(sizes, [key(t.LongType(), "id")])
    assert found["row_count"].to_pylist() == [9]
    assert bounds(found) == [(None, None, None)]


def test_columns_are_found_in_any_case_and_in_structs(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"Nest": [{"Leaf": 4}], "X": [1], "x": [2]}))
    assert bounds(read_ranges(sizes, [key(t.LongType(), "nest", "leaf")])) == [(4, 4, 0)]
    assert bounds(read_ranges(sizes, [key(t.LongType(), "x")])) == [(2, 2, 0)]


def test_a_name_of_two_columns_has_no_range(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"AB": [1], "Ab": [2]}))
    assert bounds(read_ranges(sizes, [key(t.LongType(), "ab")])) == [(None, None, None)]


def test_files_whose_types_do_not_compare_have_no_ranges(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"a": [1]}), pa.table({"a": ["text"]}))
    assert bounds(read_ranges(sizes, [key(t.LongType())])) == [(None, None, 0)] * 2


def test_long_text_is_cut_as_in_a_sample(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"a": ["x" * 300]}))
    assert bounds(read_ranges(sizes, [key(t.StringType())])) == [(b"x" * 256, b"x" * 256, 0)]


def test_a_schema_sets_the_types(tmp_path: Path) -> None:
    sizes = wrote(tmp_path, pa.table({"a": pa.array([1.5], pa.float32())}))
    like = read_ranges(sizes, [key(t.FloatType())]).schema.set(3, pa.field("min_value0", pa.float32()))
    assert read_ranges(sizes, [key(t.FloatType())], like).schema.field("min_value0").type == pa.float32()
    assert read_ranges({}, [key(t.LongType())]).num_rows == 0
