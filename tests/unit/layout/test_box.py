from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.layout.box import box_sql
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.spec import LayoutSpec

QUERY = """
    SELECT id, CASE WHEN id % 11 > 0 THEN id % 97 END AS a, CASE WHEN id % 7 > 0 THEN sha1(string(id)) END AS s,
      CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D ELSE id / 3D END AS d, id % 3 AS p
    FROM range(3000)
"""


@pytest.mark.parametrize(
    "spec",
    [
        LayoutSpec(by=["a"], files=5),
        LayoutSpec(by=["a", "s"], files=7),
        LayoutSpec(by=["d", "s", "a"], files=9),
        LayoutSpec(by=["s", "d"], files=3, partition_by=["p"]),
        LayoutSpec(by=["a", "s"], files=4, encoding="bits"),
    ],
)
def test_a_box_holds_the_rows_of_its_file_and_no_others(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, spec: LayoutSpec
) -> None:
    monkeypatch.setattr("dbt_zorder.layout.small_partitions._BYTES", 0)
    frame = spark.sql(QUERY).coalesce(1)
    layout = plan_layout(frame, spec)
    assert (layout.file_count == 1).all(), "a hash is at work"
    placed = apply_layout(frame, layout).select("id", f.spark_partition_id().alias("file")).collect()
    for file in range(layout.files):
        box = box_sql(layout, file)
        assert box is not None
        found = {row["id"] for row in frame.where(box).select("id").collect()}
        assert found == {row["id"] for row in placed if row["file"] == file}
        assert found


def test_the_files_of_a_hash_share_a_box(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, id FROM range(100)")
    layout = plan_layout(frame, LayoutSpec(by=["a"], files=3))
    assert [box_sql(layout, file) for file in range(3)] == ["true"] * 3


def test_files_along_a_curve_are_no_boxes(spark: SparkSession) -> None:
    layout = plan_layout(spark.sql(QUERY), LayoutSpec(by=["a", "s"], files=3, curve="hilbert"))
    assert box_sql(layout, 0) is None
