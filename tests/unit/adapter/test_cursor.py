from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt_zorder.adapter.cursor import SessionHandle


def test_a_cancelled_run_ends_what_it_does_and_begins_nothing_more(spark: SparkSession) -> None:
    endless = "SELECT sum(hash(id)) FROM range(1000000000000)"
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as another:
        try:
            handle, other = one.submit(SessionHandle, spark).result(), another.submit(SessionHandle, spark).result()
            running = [pool.submit(spark.sql(endless).collect) for pool in (one, another)]
            until = time.monotonic() + 30
            while len(spark.sparkContext.statusTracker().getActiveJobsIds()) < 2:
                assert time.monotonic() < until
                time.sleep(0.1)
            handle.cancel()
            with pytest.raises(Exception, match=r"(?i)cancel"):
                running[0].result(30)
            assert not running[1].done(), "jobs of other threads go on"
        finally:
            spark.sparkContext.cancelAllJobs()
    with pytest.raises(DbtRuntimeError, match="was cancelled"):
        handle.cursor().execute("SELECT 1")
    handle.close()
    cursor = other.cursor()
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]


def test_over_spark_connect_what_is_tagged_is_interrupted() -> None:
    class Remote:
        """Stands for a session of Spark Connect, which this process cannot have beside its own."""

        def __init__(self) -> None:
            self.said: list[tuple[str, str]] = []

        def __getattr__(self, name: str) -> Any:
            if name not in ("addTag", "interruptTag", "removeTag"):
                raise AttributeError(name)
            return lambda tag: self.said.append((name, tag))

    session: Any = Remote()
    handle = SessionHandle(session)
    handle.cancel()
    handle.close()
    assert [name for name, _ in session.said] == ["addTag", "interruptTag", "removeTag"]
    assert len({tag for _, tag in session.said}) == 1


def test_some_rows_are_fetched_where_dbt_limits_them(spark: SparkSession) -> None:
    handle = SessionHandle(spark)
    handle.cursor().execute("SELECT id FROM range(9) ORDER BY id")
    assert handle.fetchmany(2) == [(0,), (1,)]
    handle.close()
