"""Measure the heap that many files need in Spark's driver: ``python -m bench.driver``.

A table is really planned and really shuffled into the given number of files. Its rows go to Spark's ``noop`` sink, as
executors would write them to files. On one machine, driver and executor share a heap. Therefore the figure is the live
heap after a full garbage collection: first with the plan alone, then after the write with Spark's data on its tasks and
the shuffle. On a cluster, a table has as many input splits as Spark makes of it. Each split sends the driver the length
of its block for each file. The size of such a message is measured too, and multiplied.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, kept, narrow
from bench.figures import columns_of, figures_beside, keep_figures
from bench.kernel_time import NARROW_KEYS, RESULTS
from bench.measure import SETTINGS
from bench.scale import INPUT_SPLIT, table_bytes
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster

BLOCK_BYTES = 1300
"""Of a split's rows for one file, where there are 100,000 files: see ``bench.scale``."""


class Driver:
    """The heap of the driver."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._runtime = jvm.java.lang.Runtime.getRuntime()

    def lives(self) -> int:
        """Return the bytes that are in use after a full garbage collection."""
        for _ in range(2):  # what the first one finds to be unused, Spark's cleaner gives up by the second
            self._runtime.gc()
            time.sleep(0.5)
        return int(self._runtime.totalMemory() - self._runtime.freeMemory())

    def status_bytes(self, files: int, filled: float) -> int:
        """Return the size of one map task's report of its blocks.

        Args:
            files: as many blocks.
            filled: the share of them that has rows.
        """
        spark = self._jvm.org.apache.spark
        place = spark.storage.BlockManagerId.apply("1", "host", 7337, self._jvm.scala.Option.empty())
        sizes = self._jvm.java.lang.reflect.Array.newInstance(self._jvm.java.lang.Long.TYPE, files)
        for block in np.flatnonzero(np.random.default_rng(0).random(files) < filled).tolist():
            sizes[block] = BLOCK_BYTES
        status = spark.scheduler.MapStatus.apply(place, sizes, 0, 0)
        # what all statuses of an executor share is counted once, beyond this
        return int(spark.util.SizeEstimator.estimate(status)) - int(spark.util.SizeEstimator.estimate(place))


def main() -> None:
    """Print the table and keep it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[16, 1_000, 10_000, 100_000])
    parser.add_argument("--rows", type=float, default=3, help="millions")
    parser.add_argument("--written", type=int, default=10_000, help="more files than these are planned, not written")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session({**SETTINGS, "spark.driver.memory": "8g"}, str(DATA / "session"))
    driver = Driver(spark)
    rows = int(arguments.rows * MILLION)
    df = kept(spark, f"narrow_{rows}", partial(narrow, spark, rows))
    cluster(df, NARROW_KEYS[:2], files=16).write.format("noop").mode("overwrite").save()
    lines = []
    for files in arguments.files:
        before, started = driver.lives(), time.monotonic()
        clustered = cluster(df, NARROW_KEYS[:2], files=files)
        clustered._jdf.queryExecution().executedPlan()
        planned, seconds = driver.lives(), time.monotonic() - started
        wrote: dict[str, Any] = {}
        if files <= arguments.written:  # a task takes some 8 ms, whatever it writes
            clustered.write.format("noop").mode("overwrite").save()
            spent = time.monotonic() - started - seconds
            wrote = {"after_write_bytes": driver.lives() - before, "write_seconds": f"{spent:.1f}"}
        splits = -(-table_bytes(files) // INPUT_SPLIT)
        most, least = driver.status_bytes(files, 0.5), driver.status_bytes(files, 1)
        lines.append(
            {
                "files": files,
                "plan_bytes": planned - before,
                "plan_seconds": f"{seconds:.1f}",
                **wrote,
                "splits_of_auto": splits,
                "status_bytes_half_filled": most,
                "status_bytes_filled": least,
                "statuses_of_auto_bytes": splits * least,
                "statuses_of_auto_half_filled_bytes": splits * most,
            }
        )
        figures = arguments.out / "driver.csv"
        again = [(str(line["files"]),) for line in lines]
        keep_figures([*figures_beside(figures, ("files",), again), *lines], figures)
        Console().print(lines[-1])
        del clustered
    table = Table(*columns_of(lines), title=f"The driver's heap, {arguments.rows:g} M rows x 9 columns, 2 keys")
    for line in lines:
        table.add_row(*(str(line.get(name, "")) for name in columns_of(lines)))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
