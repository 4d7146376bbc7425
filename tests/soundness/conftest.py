from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.soundness.world import World, make_world
from tests.support import settings


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Wrong predicates are part of the tests; Spark need not log each."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


@pytest.fixture(scope="package")
def world(spark: SparkSession) -> Iterator[World]:
    with settings(spark, {"spark.sql.session.timeZone": "America/St_Johns"}):
        yield make_world(spark, seed=5, files=200)
