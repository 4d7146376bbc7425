from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.saved_layout import TREE_DIRECTORY
from dbt_zorder.tables.parquet.state import ParquetState, measure, read_state, read_state_or_layout
from tests.unit.tables.parquet.batches import folder, made, rows

HERE = "file:/w/t__zorder/v20260101T000000000-00000000"


def files_of(paths: Mapping[str, int], **bounds: pa.Array) -> pa.Table:
    base = {
        "file_path": pa.array([f"{HERE}/{path}" for path in paths], pa.string()),
        "file_size": pa.array([10 * rows for rows in paths.values()], pa.int64()),
        "row_count": pa.array(list(paths.values()), pa.int64()),
    }
    return pa.table(base | bounds)


def test_a_batch_adds_its_files_and_takes_away_those_that_it_replaced() -> None:
    before = ParquetState(HERE, None, files=files_of({"p=%C3%BC%20x/a.parquet": 3, "p=1/b.parquet": 4}))
    after = before.after(files_of({"p=%C3%BC%20x/c.parquet": 5}), {"p=ü x/a.parquet"})
    assert after.files is not None
    assert [path.rpartition("/")[2] for path in after.files["file_path"].to_pylist()] == ["b.parquet", "c.parquet"]
    assert before.size == (70, 7)
    assert after.size == (90, 9)


@pytest.mark.parametrize(
    "added",
    [files_of({"c": 5}), files_of({"c": 5}, min_value0=pa.array(["x"]), max_value0=pa.array(["y"]))],
    ids=["without bounds", "bounds of another type"],
)
def test_what_is_of_another_shape_makes_nothing_known(added: pa.Table) -> None:
    numbers = pa.array([1], pa.int64())
    before = ParquetState(HERE, None, files=files_of({"a": 3}, min_value0=numbers, max_value0=numbers))
    after = before.after(added, set())
    assert after.files is None
    assert after.size == (0, 0)


@pytest.mark.parametrize("parts", [(), ("p",)])
def test_what_is_known_after_a_batch_is_what_its_stats_say(
    spark: SparkSession, table: TableName, parts: tuple[str, ...]
) -> None:
    wanted = made(spark, table, rows(0, 300), files=2, partition_by=parts)
    info = describe(spark, table)
    assert info is not None
    for first, overwrite in ((300, False), (600, bool(parts))):
        batch = spark.sql(rows(first, first + 300, "id % 2"))
        report = append(spark, batch, wanted, overwrite=overwrite)
        assert report.removed > 0 or not overwrite
        assert report.state is not None
        assert report.state.overlap(wanted.spec) == measure(spark, table, info, wanted.spec)


def test_a_version_without_stats_has_its_tree_alone(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    location, schema = str(folder(spark, table)), spark.table(table.sql).schema
    whole = read_state(spark, location, schema, wanted.spec)
    assert [key.column.name for key in whole.keys] == ["a", "s"]
    assert list(whole.columns) == ["a", "s", "id"]
    assert whole.size[1] == 100
    for file in (folder(spark, table) / "_zorder_stats").iterdir():
        file.unlink()
    bare = read_state_or_layout(spark, location, schema, wanted.spec)
    assert (bare.files, bare.size) == (None, (0, 0))
    assert bare.tree is not None


def test_without_a_tree_the_model_names_the_keys(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100), by=("s", "a"))
    for file in (folder(spark, table) / TREE_DIRECTORY).iterdir():
        file.unlink()
    state = read_state_or_layout(spark, str(folder(spark, table)), spark.table(table.sql).schema, wanted.spec)
    assert state.tree is None
    assert [key.column.name for key in state.keys] == ["s", "a"]
    assert state.size[1] == 100
