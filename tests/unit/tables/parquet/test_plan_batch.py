from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.spark.cells import count_cells
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.small_queries import SMALL_BYTES
from dbt_zorder.tables.parquet import plan_batch as module
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.plan_batch import plan_batch
from dbt_zorder.tables.parquet.state import read_state_or_layout
from dbt_zorder.tables.registry import existing, open_table
from tests.unit.tables.parquet.batches import assert_sound, made, rows


@pytest.mark.parametrize("small", [SMALL_BYTES, -1])
def test_a_large_batch_lines_up_with_the_boxes(
    spark: SparkSession, table: TableName, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(made(spark, table, rows(0, 4000), files=8), in_memory=0)
    monkeypatch.setattr(module, "SMALL_BYTES", small)
    cut = []

    def noted(*args: Any, small: bool) -> Any:
        cut.append(small)
        return count_cells(*args, small=small)

    monkeypatch.setattr(module, "count_cells", noted)
    report = append(spark, spark.sql(rows(4000, 8000)), wanted)
    assert report.rows == 4000
    assert 4 <= report.files <= 12
    found = existing(open_table(spark, table), table).summary()
    assert found.point_query_files["a"] < 0.75 * found.files
    assert cut == [small > 0]
    assert_sound(spark, table)


@pytest.mark.parametrize("first", [20, 4000])
def test_a_batch_that_is_one_file_is_ordered_as_finely_as_it_has_pages(
    spark: SparkSession, table: TableName, first: int
) -> None:
    """It is cut as often as its pages take though it has the newest of one column alone; a tree of few cuts is not."""
    wanted = made(
        spark, table, f"SELECT id, id AS a, pmod(hash(id), 1000) AS s FROM range({first})", files=None, page_rows=20
    )
    info = describe(spark, table)
    assert info is not None
    batch = spark.sql("SELECT id + 9000 AS id, id + 9000 AS a, pmod(hash(id), 1000) AS s FROM range(1000)").coalesce(1)
    state = read_state_or_layout(spark, info.location, batch.schema, wanted.spec)
    assert state.tree is not None
    assert state.tree.layout is not None
    found = plan_batch(batch, wanted, state, fresh=False)
    assert found.files == 1
    (rows,) = [rows for rows in apply_layout(batch, found).rdd.glom().collect() if rows]
    pages = [{row.s for row in rows[start : start + 20]} for start in range(0, 1000, 20)]
    read = [sum(min(page) <= value <= max(page) for page in pages) for value in range(1000)]
    # a tree of the table parts them by the other column alone, one of the batch by both
    assert sum(read) / len(read) < (4 if first == 4000 else 14), "of 50"
