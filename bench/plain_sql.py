"""Measure the cost and the savings of pruning for plain SQL queries: ``python -m bench.plain_sql``.

Each query runs on ORDER BY's table and on a z-ordered table with the same rows and number of files. It runs as plain
SQL, by ``query`` and, if it reads one table, by ``scan_sql``. No query repeats a value of an earlier query.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import MILLION, ordered
from bench.figures import keep_figures
from bench.kernel_time import RESULTS, sized
from bench.measure import SETTINGS, in_order_of, seconds
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import prune_statement, query, scan_sql
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.build import build

CASES = ((2, 16), (2, 500), (10, 64))
"""Million rows and files, of nine columns by two keys."""

SCHEMA = "plain_sql"
ORDERED, ZORDERED = f"{SCHEMA}.ordered", f"{SCHEMA}.zordered"
FIRST_DAY = 18_518
"""Days since 1970 of the first event, see ``narrow``."""

FIGURES = ("planning", "ORDER BY", "plain", "query", "zorder_scan")


def asked(number: int) -> Mapping[str, tuple[str, bool]]:
    """Return the predicates of a turn by the names of their queries, and whether it is that of a join."""
    day = FIRST_DAY + number * 37 % 1_000
    of_day = f"event_ts >= date_from_unix_date({day}) AND event_ts < date_from_unix_date({day + 1})"
    return {
        "a value of the first key": (f"customer_id = {number * 7_919_993 % 10**9}", False),
        "a day of the second key": (of_day, False),
        "a day, joined with itself by a CTE": (of_day, True),
    }


def aggregate(source: str, predicate: str = "TRUE") -> str:
    """Return a query that reads three columns of the rows that match."""
    return f"SELECT count(*), sum(price), max(sku) FROM {source} AS t WHERE {predicate}"


def joined(source: str, predicate: str) -> str:
    """Return a query that reads the rows that match twice, by a filter that stands in a CTE."""
    return (
        f"WITH some AS (SELECT * FROM {source} WHERE {predicate}) "
        "SELECT count(*), sum(b.price) FROM some AS a JOIN some AS b ON a.id = b.id"
    )


def measure(spark: SparkSession, turns: int) -> list[dict[str, object]]:
    """Return medians of some turns in milliseconds, a line for each query."""
    numbers = count(1)
    times: dict[str, dict[str, list[float]]] = {}
    read: dict[str, list[int]] = {}

    def ways(name: str, number: int) -> Mapping[str, Callable[[], object]]:
        predicate, is_join = asked(number)[name]
        write = joined if is_join else aggregate
        plain = write(ZORDERED, predicate)

        def plan() -> None:
            read.setdefault(name, []).append(prune_statement(spark, plain).reads[0].files_read)

        run: dict[str, Callable[[], object]] = {
            "ORDER BY": lambda: spark.sql(write(ORDERED, predicate)).collect(),
            "plain": lambda: spark.sql(plain).collect(),
            "query": lambda: query(spark, plain).collect(),
            "planning": plan,
        }
        if not is_join:
            run["zorder_scan"] = lambda: spark.sql(aggregate(scan_sql(spark, ZORDERED, predicate))).collect()
        return run

    for turn in range(turns + 2):
        for name in asked(0):
            for way in in_order_of(turn, FIGURES):
                work = ways(name, next(numbers)).get(way)
                if work is None:
                    continue
                took = seconds(work)
                if turn > 1:  # the first ones find nothing compiled
                    times.setdefault(name, {}).setdefault(way, []).append(took)
    return [
        {
            "asked": name,
            "files_read": round(statistics.mean(read[name]), 1),
            **{way: round(1000 * statistics.median(found)) for way, found in of_way.items()},
        }
        for name, of_way in times.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    spark = open_session({"spark.driver.memory": "9g", **SETTINGS}, str(OUTPUT / "session_plain_sql"))
    lines: list[dict[str, object]] = []
    columns = ("rows", "files", "asked", "files_read", *FIGURES)
    table = Table(*columns, title="milliseconds")
    for millions, files in CASES:
        rows = int(millions * MILLION * given.scale)
        df, keys = sized(spark, rows, 9, 2)
        spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        spark.sql(f"CREATE SCHEMA {SCHEMA}")
        ordered(df, files, keys).write.saveAsTable(ORDERED)
        build(spark, df, BuildRequest(TableName(SCHEMA, "zordered"), LayoutSpec(by=keys, files=files, seed=1)))
        for line in measure(spark, given.turns):
            lines.append({"rows": rows, "files": files, **line})
            table.add_row(*(str(lines[-1].get(name, "")) for name in columns))
        keep_figures(lines, given.out / "plain_sql.csv")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
