"""A build of tables that have more rows than are sampled: the seed decides which are drawn, and thereby all files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.sample import LEAST_ROWS
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.save import save_table
from tests.support import unique

ROWS = 150_000


@pytest.fixture(scope="module")
def frame(spark: SparkSession, database: str) -> DataFrame:
    """Rows in two splits, many of them with equal keys: what parts these is their order alone."""
    assert ROWS > 2 * LEAST_ROWS
    spark.sql(
        f"CREATE TABLE {database}.many USING parquet AS SELECT id, pmod(hash(id), 3000) AS a, "
        f"left(sha1(string(id)), 2) AS s, IF(id % 3 > 0, concat('p', id % 3), NULL) AS p FROM range(0, {ROWS}, 1, 2)"
    )
    return spark.table(f"{database}.many")


def content(spark: SparkSession, table: TableName) -> list[tuple[str, str, str]]:
    """Return each file's folder, and digests of its rows and of these in their order; sorted, as names are new."""
    info = describe(spark, table)
    assert info is not None
    found = []
    for file in Path(info.location.removeprefix("file:")).rglob("part-*.parquet"):
        rows = [repr(row) for row in pq.read_table(file, partitioning=None).to_pylist()]
        folder = file.parent.name if "=" in file.parent.name else ""
        found.append((folder, digest(sorted(rows)), digest(rows)))
    return sorted(found)


def digest(rows: list[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


CASES: list[tuple[str, dict[str, Any]]] = [
    ("zorder", {"files": 14}),
    ("zorder", {"files": 5, "partition_by": "p"}),
    ("zorder", {"file_size": 60_000}),
    ("hilbert", {"files": 14}),
    ("linear", {"files": 14}),
]


@pytest.mark.parametrize(("curve", "more"), CASES, ids=[f"{curve} by {', '.join(more)}" for curve, more in CASES])
def test_the_same_seed_gives_the_same_files_and_another_seed_others(
    spark: SparkSession, database: str, frame: DataFrame, way: str, curve: str, more: dict[str, Any]
) -> None:
    def built(seed: int) -> list[tuple[str, str, str]]:
        table = TableName(database, unique("same"))
        done = save_table(frame, str(table), ["a", "s"], curve=curve, seed=seed, **more)
        assert done.rows == ROWS
        found = content(spark, table)
        assert len(found) == done.files > 10
        return found

    first, again, other = built(5), built(5), built(6)
    if (way, "file_size" in more) != ("by Spark", True):  # there cuts go by files that Spark has measured
        assert first == again, "the same rows in the same files and in the same order"
    assert members(first) != members(other), "another seed draws other rows, and its cuts lie elsewhere"


def members(found: list[tuple[str, str, str]]) -> list[str]:
    """Return which rows share a file, in whatever order they stand there."""
    return sorted(rows for _, rows, _ in found)
