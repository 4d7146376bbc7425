"""Tests of one file format, which a session is set up for: ``ZORDER_FORMAT=delta pytest tests/formats``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from tests.conftest import FORMATS_HERE
from tests.formats.tables import BY_SPARK, HERE
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


@pytest.fixture
def way(caplog: pytest.LogCaptureFixture) -> Callable[[TableName], str]:
    """Return a function that says who wrote the files of a table since it was called last."""
    caplog.set_level(logging.DEBUG, "dbt_zorder")

    def written_by(table: TableName) -> str:
        text = caplog.text
        caplog.clear()
        here = f"{table} is laid out and written here" in text and "by Spark after all" not in text
        return HERE if here else BY_SPARK

    return written_by
