from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt_zorder.adapter.cursor import SessionHandle


def test_a_cancelled_run_ends_what_it_does_and_begins_nothing_more(spark: SparkSession) -> None:
    handle, other = SessionHandle(spark), SessionHandle(spark)
    with ThreadPoolExecutor(1) as threads:
        began = time.monotonic()
        running = threads.submit(handle.session.sql("SELECT sum(hash(id)) FROM range(1000000000000)").collect)
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.1)
        handle.cancel()
        with pytest.raises(Exception, match=r"(?i)cancel"):
            running.result()
        assert time.monotonic() - began < 25
    with pytest.raises(DbtRuntimeError, match="was cancelled"):
        handle.cursor().execute("SELECT 1")
    cursor = other.cursor()
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]
