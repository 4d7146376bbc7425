from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.progress import Clock

SLOW = "SELECT reflect('java.lang.Thread', 'sleep', cast(100 + id * 0 AS bigint)) FROM range(0, 16, 1, 16)"


@pytest.fixture
def lines() -> Iterator[list[str]]:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("dbt_zorder")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield said
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_phase_and_tasks_are_told_now_and_then(spark: SparkSession, lines: list[str]) -> None:
    with progress(spark, "orders", every=0.1), Clock().phase("write"):
        spark.sql(SLOW).collect()
    counted = [found for line in lines if (found := re.match(r"orders: write, (\d+) of (\d+) tasks done, \d+ s", line))]
    assert counted, lines
    assert {int(found[2]) for found in counted} <= {16, 17}
    assert all(int(found[1]) < int(found[2]) for found in counted)


def test_jobs_of_other_threads_are_not_told(spark: SparkSession, lines: list[str]) -> None:
    other = threading.Thread(target=lambda: spark.sql(SLOW).collect())
    with progress(spark, "orders", every=0.1), Clock().phase("stats"):
        other.start()
        other.join()
    assert lines
    assert all(re.match(r"orders: stats, \d+ s \(\d+ s in all\)", line) for line in lines), lines


def test_a_quick_build_says_nothing_and_leaves_no_group(spark: SparkSession, lines: list[str]) -> None:
    before = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
    with progress(spark, "orders", every=60), Clock().phase("write"):
        spark.range(1).collect()
    assert lines == []
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == before
