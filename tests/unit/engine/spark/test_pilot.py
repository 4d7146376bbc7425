from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.pilot import SparkFileMeasurer
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.listing import list_data
from dbt_zorder.tables.parquet.build import write_rows
from tests.support import unique


@pytest.mark.parametrize(
    ("a", "files", "rows"),
    [("pmod(hash(id), 5000)", [0, 2], 3_000), ("1", [1], 6_000)],
    ids=["two files", "files that share a value"],
)
def test_rows_and_bytes_are_those_of_the_files(
    spark: SparkSession, tmp_path: Path, a: str, files: list[int], rows: int
) -> None:
    frame = spark.sql(f"SELECT id, {a} AS a, sha1(string(id)) AS t FROM range(6000)")
    spec = LayoutSpec(by=["a"], files=4)
    request = BuildRequest(TableName("default", unique("measured")), spec)
    layout = plan_layout(frame, spec)
    folder = str(tmp_path / "measured")
    measured = SparkFileMeasurer(frame, folder, partial(write_rows, request)).size_of(layout, files)
    assert measured.rows == pytest.approx(rows, rel=0.05)
    write_rows(request, layout, frame, str(tmp_path / "whole"))
    whole = sum(list_data(spark, str(tmp_path / "whole")).values())
    assert measured.nbytes == pytest.approx(whole * rows / 6_000, rel=0.05)
    assert not Path(folder).exists()
