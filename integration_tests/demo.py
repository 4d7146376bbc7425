"""After ``dbt build``: the same queries with and without pruning, and on the same rows unclustered and sorted.

Files and bytes are those of Spark's own scan metrics, ``number of files read`` and ``size of files read``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from dbt_zorder.adapter.session.open import SESSION_DIRECTORY
from dbt_zorder.api import open_session, scan, scan_metrics

REPEATS = 3
VALUES = 50
QUERIES = {
    "one plane": "tailnum = 'N14228'",
    "one hour": "time_hour = timestamp'2013-07-04 14:00:00'",
    "one plane in one week": "tailnum = 'N14228' and time_hour between timestamp'2013-07-01' and timestamp'2013-07-08'",
    "one month": "time_hour >= timestamp'2013-07-01' and time_hour < timestamp'2013-08-01'",
    "three planes": "tailnum in ('N14228', 'N730MQ', 'N9EAMQ')",
    "another column (cannot prune)": "dest = 'HNL'",
}


@dataclass(frozen=True)
class Reading:
    """What one query read: files, bytes, and the median of its seconds."""

    files: int
    size: int
    seconds: float
    rows: int
    checksum: int

    def __str__(self) -> str:
        return f"{self.files:>2} files {self.size / 1e6:>5.2f} MB {self.seconds:>5.2f} s"


def read(query: Callable[[], DataFrame]) -> Reading:
    """Run a query some times, looking up stats included; count its rows and sum their hashes over all columns."""
    seconds = []
    for _ in range(REPEATS):
        started = time.monotonic()
        result = query().selectExpr("count(*)", "coalesce(sum(xxhash64(*) % 1000003), 0)")
        rows, checksum = result.collect()[0]
        seconds.append(time.monotonic() - started)
    metrics = scan_metrics(result)
    return Reading(metrics.files, metrics.size, statistics.median(seconds), rows, checksum)


def full_read(spark: SparkSession, table: str, where: str) -> DataFrame:
    """Return what plain SQL reads."""
    return spark.table(table).where(where)


def main(spark: SparkSession, console: Console) -> None:
    """Print the table."""
    table = Table(title="Flights of 2013 by zorder_by=['tailnum', 'time_hour'], 16 files each: what a query reads")
    for heading in ("query", "z-ordered, pruned", "z-ordered, full read", "unclustered", "ORDER BY tailnum, time_hour"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for what, where in QUERIES.items():
        queries = [
            partial(scan, spark, "flights.flights", where),
            *(
                partial(full_read, spark, f"flights.{name}", where)
                for name in ("flights", "flights_unclustered", "flights_sorted")
            ),
        ]
        for query in queries:  # a first read warms up the code that Spark generates
            query().count()
        readings = [read(query) for query in queries]
        answers = {(reading.rows, reading.checksum) for reading in readings}
        if len(answers) != 1:
            msg = f"The answers to {where!r} differ: {answers}"
            raise AssertionError(msg)
        table.add_row(f"{what}\n[dim]{readings[0].rows:,} rows", *(str(reading) for reading in readings))
    console.print(table)
    console.print("The answers are equal in every row. Theory's minimum for an equality query: 4 of 16 files.")
    for column, mean in mean_files(spark).items():
        console.print(f"Over {VALUES} values of {column}, an equality query read {mean:.2f} of 16 files on average.")


def mean_files(spark: SparkSession) -> dict[str, float]:
    """Return the mean number of files that Spark read for an equality on each column, over values picked by hash."""
    means = {}
    for column, literal in {"tailnum": "'{}'", "time_hour": "timestamp'{}'"}.items():
        values = spark.sql(
            f"select cast({column} as string) from flights.flights where {column} is not null "
            f"group by {column} order by xxhash64({column}) limit {VALUES}"
        ).collect()
        counts = []
        for row in values:
            df = scan(spark, "flights.flights", f"{column} = {literal.format(row[0])}").selectExpr("count(*)")
            df.collect()
            counts.append(scan_metrics(df).files)
        means[column] = statistics.mean(counts)
    return means


if __name__ == "__main__":
    directory = Path(__file__).parent / SESSION_DIRECTORY
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}
    main(open_session(settings, str(directory)), Console(width=180))
