from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.layout.spec import LayoutSpec


@pytest.mark.parametrize("files", [1, 5, 8])
def test_each_file_is_one_cell_that_rows_come_to(spark: SparkSession, files: int) -> None:
    layout = plan_layout(spark.range(4000), LayoutSpec(by=["id"], files=files))
    assert layout.reached.sum() == files
    assert np.unique(layout.first_file[layout.reached]).tolist() == list(range(files))
    assert len(layout.reached) == len(layout.first_file) == 1 << layout.file_levels


def test_rows_come_to_every_tree(spark: SparkSession) -> None:
    rows = spark.range(900).selectExpr("id", "id % 3 AS p")
    layout = plan_layout(rows, LayoutSpec(by=["id"], files=3, partition_by=["p"]))
    assert layout.reached.reshape(3, -1).sum(axis=1).tolist() == [3, 3, 3]
