"""Seconds of queries on storage where each request waits 20 ms, as requests to an object store do.

The storage is ``http_storage``, which this program starts. Its tables are made without waiting.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from dbt_zorder.api import open_session, query, save_table
from integration_tests.demo.files_read import QUERIES, Reading, check_equal, read
from integration_tests.demo.http_storage import HttpStorage, serve
from integration_tests.demo.project import FOLDER, SETTINGS

FILES = 64
MILLISECONDS = 20
BY = ["tailnum", "time_hour"]
COLUMNS = [*BY, "carrier", "flight", "origin", "dest", "dep_delay"]
ASKED = ("one plane", "one hour", "one plane in one week", "another column (cannot prune)")


@dataclass(frozen=True)
class Timing:
    """A query's reading, with its seconds and the number of its requests."""

    reading: Reading
    seconds: float
    requests: int

    def __str__(self) -> str:
        return f"[bold]{self.seconds:.2f} s[/bold]\n{self.reading.files} files, {self.requests} requests"


def build(spark: SparkSession) -> None:
    """Save the flights that ``load_nycflights13.py`` has left, in three ways."""
    spark.sql("create schema far")
    flights = spark.read.parquet(str(FOLDER / "data" / "flights.parquet")).select(COLUMNS)
    flights.repartition(FILES).write.saveAsTable("far.unclustered")
    flights.repartitionByRange(FILES, *BY).sortWithinPartitions(*BY).write.saveAsTable("far.sorted")
    save_table(flights, "far.zordered", BY, files=FILES)


def measure(storage: HttpStorage, ask: Callable[[], DataFrame]) -> Timing:
    """Run a query once without waiting, so that Spark has compiled it and listed the files, and once with it."""
    storage.delay = 0
    read(ask())
    before = storage.requests
    storage.delay = MILLISECONDS / 1000
    started = time.monotonic()
    reading = read(ask())
    return Timing(reading, time.monotonic() - started, storage.requests - before)


def show_seconds(spark: SparkSession, storage: HttpStorage, console: Console) -> None:
    """Print the table."""
    build(spark)
    table = Table(
        title=f"2. Seconds where each request waits {MILLISECONDS} ms, in tables of {FILES} files",
        show_lines=True,
    )
    for heading in ("query", "unclustered", "ORDER BY tailnum, time_hour", "z-ordered, plain SQL", "z-ordered, pruned"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for what in ASKED:
        where = QUERIES[what]
        timings = [
            measure(storage, ask)
            for ask in (
                lambda where=where: spark.table("far.unclustered").where(where),
                lambda where=where: spark.table("far.sorted").where(where),
                lambda where=where: spark.table("far.zordered").where(where),
                lambda where=where: query(spark, f"select * from far.zordered where {where}"),
            )
        ]
        check_equal(where, {timing.reading.answer for timing in timings})
        table.add_row(what, *map(str, timings))
    console.print(table)
    console.print(
        f"A server on this machine answers each request for a file after {MILLISECONDS} ms. Spark reads with "
        f"{os.cpu_count()} processors. Seconds include the choice of files. The answers are equal in every row."
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "storage") as storage:
        settings = {
            **SETTINGS,
            "spark.sql.warehouse.dir": f"{storage.address}/warehouse",
            # else Spark asks for each file which machine is near it
            "spark.sql.sources.ignoreDataLocality": "true",
        }
        spark = open_session(settings, f"{folder}/session")
        show_seconds(spark, storage, Console())
        spark.stop()
