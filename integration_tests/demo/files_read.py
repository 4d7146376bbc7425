"""Files and bytes that queries read of the flights, by the tables that ``dbt build`` has made.

They are those of Spark's own scan metrics, ``number of files read`` and ``size of files read``.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from dbt_zorder.api import scan, scan_metrics

VALUES = 20
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
    """What one query read.

    Attributes:
        files, size: number of files, and their bytes.
        answer: number of rows, and a checksum over all their columns.
    """

    files: int
    size: int
    answer: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.files:>2} files {self.size / 1e6:>5.2f} MB"


def read(frame: DataFrame) -> Reading:
    """Run a query."""
    result = frame.selectExpr("count(*)", "coalesce(sum(xxhash64(*) % 1000003), 0)")
    rows, checksum = result.collect()[0]
    metrics = scan_metrics(result)
    return Reading(metrics.files, metrics.size, (rows, checksum))


def check_equal(where: str, answers: set[tuple[int, int]]) -> None:
    """Raise AssertionError if a query has several answers."""
    if len(answers) != 1:
        msg = f"The answers to {where!r} differ: {answers}"
        raise AssertionError(msg)


def show_files_read(spark: SparkSession, console: Console) -> None:
    """Print the table."""
    table = Table(title="1. Files and bytes that a query reads of the flights of 2013, in tables of 16 files")
    for heading in ("query", "rows", "unclustered", "ORDER BY tailnum, time_hour", "z-ordered, pruned"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for what, where in QUERIES.items():
        plain = [spark.table(f"flights.flights_{name}").where(where) for name in ("unclustered", "sorted")]
        readings = [read(frame) for frame in (*plain, scan(spark, "flights.flights", where))]
        check_equal(where, {reading.answer for reading in readings})
        table.add_row(what, f"{readings[0].answer[0]:,}", *map(str, readings))
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
