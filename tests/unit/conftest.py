from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine import choose
from dbt_zorder.engine.local import small_table as held_rows
from dbt_zorder.engine.local.place import rows_of_files
from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.engine.rows import Rows
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet import build
from dbt_zorder.tables.parquet.swap import Definition
from tests.support import unique
from tests.unit.tables.parquet.versions import Write


@pytest.fixture(scope="module")
def database(spark: SparkSession) -> Iterator[str]:
    """A database of this module's own."""
    name = unique("unit")
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def table(database: str) -> TableName:
    """Return a name in the module's database that no table has yet."""
    return TableName(database, unique("t"))


@pytest.fixture(params=["here", "from disk", "by Spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return by whom rows are laid out and written; for tests of what must not depend on it."""
    if request.param == "from disk":
        monkeypatch.setattr(choose, "_is_small", lambda _: False)
    if request.param == "by Spark":
        monkeypatch.setattr(choose, "_writer", lambda *_: "a test wants it so")
    return str(request.param)


def lose_a_row(monkeypatch: pytest.MonkeyPatch, by_spark: str) -> None:
    """Let what is written lack a row: any that is written here, and by Spark the one that a condition leaves out."""

    def lacking(*args: Any) -> dict[int, Rows]:
        found = rows_of_files(*args)
        return {**found, 0: found[0][1:]}

    calls = count()
    order = ShuffledRows.order

    def once(*args: Any) -> Rows:
        return order(*args)[0 if next(calls) else 1 :]

    monkeypatch.setattr(held_rows, "rows_of_files", lacking)
    monkeypatch.setattr(ShuffledRows, "order", once)
    monkeypatch.setattr(build, "apply_layout", lambda df, *how: apply_layout(df.where(by_spark), *how))


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> Write:
    """Return what writes a version of a table below ``tmp_path``."""

    def write(version: str, query: str) -> Definition:
        frame = spark.sql(query)
        frame.write.parquet(str(tmp_path / version))
        return Definition(frame.schema)

    return write
