from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support import unique


@pytest.fixture(scope="module")
def database(spark: SparkSession) -> Iterator[str]:
    """A database of this module's own."""
    name = unique("unit")
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")
