from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.batch_size import files_of_batch, target_bytes
from dbt_zorder.tables.parquet.saved_layout import TREE_DIRECTORY, read_tree, write_tree

BUILT = Summary(3, 500, 12_345, {"a": 1.5})


def test_a_tree_is_kept_with_the_figures_of_its_build(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT id AS a, 'x' AS s FROM range(500)")
    layout = plan_layout(df, LayoutSpec(by=["a"], files=3))
    write_tree(spark, f"file:{tmp_path}", layout, BUILT)
    tree = read_tree(spark, f"file:{tmp_path}", df.schema)
    assert tree is not None
    assert (tree.built, tree.by) == (BUILT, ["a"])
    assert tree.layout is not None
    assert tree.layout.levels == layout.levels
    other = read_tree(spark, f"file:{tmp_path}", spark.sql("SELECT 1 AS b").schema)
    assert other is not None
    assert (other.layout, other.built) == (None, BUILT)


@pytest.mark.parametrize("content", [None, "", "{}", "[1]", '{"layout": {"format": 1}, "built": {}, "by": []}'])
def test_what_cannot_be_read_is_no_tree(spark: SparkSession, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / TREE_DIRECTORY).mkdir()
        (tmp_path / TREE_DIRECTORY / "part-0").write_text(content)
    assert read_tree(spark, f"file:{tmp_path}", spark.range(1).schema) is None


def test_a_number_of_files_means_their_size_which_can_be_asked_for() -> None:
    spec = LayoutSpec(by=["a"], files=3)
    assert target_bytes(spec, BUILT, 1) == 12_345 // 3
    tiny = target_bytes(spec, Summary(4, 100, 3_000, {}), 1)
    assert parse_size(tiny) == tiny == 1000


@pytest.mark.parametrize(
    ("built", "table_rows", "rows", "partitioned", "files"),
    [
        (1000, 1000, 1000, False, None),  # grows as tables do
        (1000, 1000, 3000, False, None),
        (1000, 1000, 99_000, False, 16),  # a backfill behind a first run of a few rows
        (1000, 100_000, 1000, False, 1),
        (1000, 100_000, 100_000, False, 8),
        (1000, 100_000, 1000, True, None),
        (1000, 100_000, 10_000, True, 16),
        (0, 0, 5, False, 16),  # built empty
        (0, 0, 5, True, 16),
        (0, 500, 5, True, None),  # nobody knows of what it was built
    ],
)
def test_a_batch_that_outgrows_its_table_has_its_share_of_the_files(
    built: int, table_rows: int, rows: int, partitioned: bool, files: int | None
) -> None:
    spec = LayoutSpec(by=["a"], files=16)
    figures = Summary(16, built, 16_000, {})
    assert files_of_batch(spec, figures, table_rows, rows, partitioned=partitioned) == files
    assert files_of_batch(LayoutSpec(by=["a"]), figures, table_rows, rows, partitioned=partitioned) is None
