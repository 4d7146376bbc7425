from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.stats import cache as held
from dbt_zorder.stats import collect
from dbt_zorder.stats.store import write_stats
from tests.unit.pruning.helpers import COLUMNS, DATA, location


@pytest.fixture(autouse=True, params=["held", "read by a job"])
def stats_are(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stats are held in memory and large ones are not; both ways must answer alike."""
    if request.param != "held":
        monkeypatch.setattr(held, "FILE_BYTES", 0)


@pytest.fixture(scope="session")
def table(spark: SparkSession) -> Iterator[str]:
    """A table of 8 files with statistics of every column."""
    spark.sql("CREATE DATABASE pruning_unit")
    spark.sql(f"CREATE TABLE pruning_unit.t USING parquet AS {DATA}")
    write_stats(collect(spark, "pruning_unit.t", COLUMNS), location(spark, "pruning_unit.t"))
    yield "pruning_unit.t"
    spark.sql("DROP DATABASE pruning_unit CASCADE")
