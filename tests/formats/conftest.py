"""Tests of one file format, which a session is set up for: ``ZORDER_FORMAT=delta pytest tests/formats``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName
from tests.conftest import FORMATS_HERE
from tests.support import unique


@pytest.fixture(scope="session")
def file_format() -> str:
    return FORMATS_HERE[0]


@pytest.fixture(scope="session")
def database(spark: SparkSession) -> Iterator[str]:
    name = unique("formats")
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def table(database: str) -> TableName:
    return TableName(database, unique("t"))
