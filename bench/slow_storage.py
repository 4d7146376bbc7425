"""Measure queries on storage where each request waits 20 ms: ``python -m bench.slow_storage``.

The z-ordered tables of TPC-H (``--suite tpcds``) lie in a bucket of ``bench.slow_store``, which Spark reads by S3A.
Each query runs as plain SQL and by ``query``: once to warm up and to compare the rows, then in turn. All requests
count, also those of planning. The store is a process on the same machine, so that its work slows both ways down.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.measure import in_order_of, seconds
from bench.slow_store import Requests, SlowStore, slow_store
from bench.statements import WAYS, Line, add_options, run, same, ways
from bench.suites import Suite, Tables, numbers
from bench.tpcds import SUITE as TPCDS
from bench.tpch import SUITE as TPCH
from dbt_zorder.pruning.plain_sql.statement import prepare
from tests.servers.object_store import store_settings

SUITES: dict[str, Suite] = {suite.name: suite for suite in (TPCH, TPCDS)}

WHOLE = {
    "spark.hadoop.fs.s3a.multipart.size": "1G",
    "spark.hadoop.fs.s3a.multipart.threshold": "1G",
}
"""Settings by which S3A uploads each file by one request: the store refuses uploads in parts."""


def measure(spark: SparkSession, store: SlowStore, number: int, sql: str, turns: int) -> Line:
    """Return the figures of a query: medians of seconds, and requests and bytes, of both ways.

    ``first_requests_*`` are those of the run that warms up, by which a session first reads a table's list of files and
    its statistics.
    """
    line: Line = {"number": number}
    runs = ways(spark, sql, "zorder")
    answers = []
    for way, ask in runs.items():
        before = store.requests()
        answers.append(ask())
        line[f"first_requests_{way}"] = (store.requests() - before).number
    line["equal"] = same(*answers)
    took: dict[str, list[float]] = {way: [] for way in runs}
    made: dict[str, list[Requests]] = {way: [] for way in runs}
    for turn in range(turns):
        for way in in_order_of(turn, runs):
            before = store.requests()
            took[way].append(seconds(runs[way]))
            made[way].append(store.requests() - before)
    for way in runs:
        line[f"requests_{way}"] = round(statistics.median(one.number for one in made[way]))
        line[f"bytes_{way}"] = round(statistics.median(one.bytes for one in made[way]))
        line[way] = round(statistics.median(took[way]), 3)
    places = prepare(spark, sql).places
    line["rules"] = "; ".join(dict.fromkeys(rule for place in places for rule in place.rules))
    return line


def summarize(lines: Sequence[Line]) -> Table:
    """Return a line for each query, and the sums."""
    figures = [f"{figure}{way}" for figure in ("", "requests_", "bytes_") for way in WAYS]
    table = Table("query", "s plain", "s query", "ratio", "requests", "by query", "MB", "by query", "equal rows")

    def add(name: str, values: dict[str, float], equal: bool) -> None:
        ratio = values["query"] / values["plain"] if values["plain"] else 1.0
        shown = [
            f"{values[name] / 1e6:.1f}" if name.startswith("bytes") else f"{values[name]:,.0f}" for name in figures
        ]
        table.add_row(name, f"{values['plain']:.2f}", f"{values['query']:.2f}", f"{ratio:.2f}", *shown[2:], str(equal))

    for line in lines:
        add(str(line["number"]), {name: float(str(line[name])) for name in figures}, bool(line["equal"]))
    table.add_section()
    sums = {name: sum(float(str(line[name])) for line in lines) for name in figures}
    add("sum", sums, all(line["equal"] for line in lines))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--suite", choices=SUITES, default="tpch")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="that each request waits")
    given = parser.parse_args(arguments)
    suite = SUITES[given.suite]
    folder = given.data or suite.data(given.scale)
    asked = numbers(given.queries, suite.generate(folder, given.scale))
    tables = Tables(suite, "zorder", given.scale, given.files)
    console = Console(width=140)
    with slow_store(OUTPUT / f"slow_store_{suite.name}") as store:
        spark = tables.open_session({**store_settings(store.address), **WHOLE}, "_slow")
        console.print("files:", tables.build(spark, folder))
        store.wait(given.milliseconds / 1000)
        out = given.out / f"slow_storage_{suite.name}.csv"
        lines = run(suite, asked, lambda number, sql: measure(spark, store, number, sql, given.turns), out, console)
        console.print(summarize(lines))
        spark.stop()


if __name__ == "__main__":
    main()
