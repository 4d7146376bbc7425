from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.layout.split_trees import split_trees

QUERY = "SELECT pmod(hash(id), 1000) AS a, pmod(hash(id, 1), 1000) AS b, id % 3 AS p FROM range(6000)"


def tree(layout: Layout, hashed: int) -> list[object]:
    """Return all that a layout has of one tree, with files numbered from 0."""
    number = layout.partition_hashes.tolist().index(hashed)
    cells = slice(number << layout.file_levels, (number + 1) << layout.file_levels)
    first = layout.first_file[cells]
    levels = [
        {key: list(values[number << level : (number + 1) << level]) for key, values in cuts.items()}
        for level, cuts in enumerate(layout.levels)
    ]
    return [levels, (first - first[0]).tolist(), layout.file_count[cells].tolist(), layout.files_of_trees[number]]


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_each_part_has_the_tree_of_its_partition(spark: SparkSession, curve: str) -> None:
    df = spark.sql(QUERY)
    planned = plan_layout(df, LayoutSpec(by=["a", "b"], files=5, partition_by=["p"], curve=curve))
    layout = layout_from_json(layout_to_json(planned), df.schema)
    assert layout is not None
    one, two, three = layout.partition_hashes.tolist()
    parts = {40: two, -7: one, 5: two, 9: one, 12: 999}
    found = split_trees(layout, parts)
    assert found.partition_hashes.tolist() == [-7, 5, 9, 40], "in order, and without a partition that has no tree"
    assert (found.trees, found.files, found.rows) == (4, 20, layout.rows)
    assert found.first_file[0] == 0
    assert (np.diff(found.first_file) >= 0).all()
    for part in found.partition_hashes.tolist():
        assert tree(found, part) == tree(layout, parts[part])
    assert repr(layout_from_json(layout_to_json(found), df.schema)) == repr(found)
    assert three not in parts.values()
