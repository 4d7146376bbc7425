"""Measure the queries of a suite one by one: seconds, bytes, share of the facts' bytes, and whether rows are equal.

On our tables each query runs as plain SQL and by ``query`` in turn. On other tables it runs as plain SQL alone, and the
format leaves files out by its own statistics. A run before these warms up and counts bytes, see ``COUNTED``.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import Row, SparkSession
from rich.console import Console
from rich.table import Table

from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import COUNTED, bytes_read, seconds_in_turn
from bench.suites import CONTENDERS, Suite, Tables, numbers
from dbt_zorder.pruning import query
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.spark.conf import settings

Line = dict[str, object]
Way = Callable[[], list[Row]]

WAYS = ("plain", "query")


def ways(spark: SparkSession, sql: str, contender: str) -> dict[str, Way]:
    """Return how a query runs on the tables of a contender, by name."""
    found: dict[str, Way] = {"plain": lambda: spark.sql(sql).collect()}
    if contender == "zorder":
        found["query"] = lambda: query(spark, sql).collect()
    return found


def measure(spark: SparkSession, number: int, sql: str, turns: int, contender: str = "zorder") -> Line:
    """Return the figures of a query.

    ``share`` is that of the facts' bytes in the files that ``query`` reads, ``bytes_*`` what Spark's tasks read in
    fact, ``rules`` what excluded the others. ``answer`` is the same for the same rows, also on other tables.
    """
    line: Line = {"number": number}
    if contender == "zorder":
        places = prepare(spark, sql).places
        total = sum(place.bytes for place in places)
        line["places"] = len(places)
        line["share"] = round(sum(place.bytes_read for place in places) / total, 4) if total else 1.0
        line["rules"] = "; ".join(dict.fromkeys(rule for place in places for rule in place.rules))
    runs = ways(spark, sql, contender)
    answers: list[list[Row]] = []
    with settings(spark, COUNTED):
        for way, run in runs.items():
            before = bytes_read(spark)
            answers.append(run())
            line[f"bytes_{way}"] = bytes_read(spark) - before
    line["equal"] = all(same(answers[0], answer) for answer in answers)
    line["rows"], line["answer"] = len(answers[0]), digest(answers[0])
    planning = {"planning": lambda: prepare(spark, sql)} if contender == "zorder" else {}
    line.update(seconds_in_turn({**runs, **planning}, turns))
    return line


def same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether rows are equal; sums of floats differ in their last digits by the order of the rows."""
    return Counter(map(_rounded, one)) == Counter(map(_rounded, other))


def digest(rows: Sequence[Row]) -> str:
    """Return a short text that is the same for the same rows."""
    return hashlib.sha256("\n".join(sorted(repr(_rounded(row)) for row in rows)).encode()).hexdigest()[:12]


def _rounded(row: Row) -> tuple[object, ...]:
    return tuple(f"{value:.6g}" if isinstance(value, float) else value for value in row)


def summarize(lines: Sequence[Line]) -> Table:
    """Return the totals: of the shares over the queries that read facts, of all else over all queries."""
    table = Table("figure", "value")
    table.add_row("queries", str(len(lines)))
    facts = [line for line in lines if line.get("places")]
    if facts:
        shares = _values(facts, "share")
        table.add_row("queries that read facts", str(len(facts)))
        table.add_row("mean share of fact bytes read", f"{statistics.mean(shares):.3f}")
        table.add_row("queries that skip a third and more", str(sum(share <= 2 / 3 for share in shares)))
    table.add_row("queries with other rows", str(sum(not line["equal"] for line in lines)))
    for way in (*WAYS, "planning"):
        if any(way in line for line in lines):
            table.add_row(f"seconds, {way}", f"{sum(_values(lines, way)):.1f}")
    for way in WAYS:
        if any(f"bytes_{way}" in line for line in lines):
            table.add_row(f"megabytes, {way}", f"{sum(_values(lines, f'bytes_{way}')) / 1e6:,.1f}")
    if facts and "planning" in facts[0]:
        table.add_row("median seconds of planning", f"{statistics.median(_values(facts, 'planning')):.3f}")
    return table


def _values(lines: Sequence[Line], name: str) -> list[float]:
    return [float(str(line[name])) for line in lines if name in line]


def add_options(parser: argparse.ArgumentParser, *, turns: int = 3) -> None:
    """Add the options of every benchmark that runs the queries of a suite."""
    parser.add_argument("--queries", type=int, nargs="*", help="numbers of the queries; all by default")
    parser.add_argument("--turns", type=int, default=turns)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=256, help="of the largest facts")
    parser.add_argument("--data", type=Path, help="folder of the generated tables")
    parser.add_argument("--out", type=Path, default=RESULTS)


def run(
    suite: Suite, asked: Mapping[int, str], measured: Callable[[int, str], Line], out: Path, console: Console
) -> list[Line]:
    """Measure queries, print and keep the figures of each as they come, and print the totals."""
    lines: list[Line] = []
    for number, sql in asked.items():
        lines.append(measured(number, sql))
        console.print(suite.name, *(f"{name}={value}" for name, value in lines[-1].items()), highlight=False)
        keep_figures(lines, out)
    return lines


def main(suite: Suite, description: str | None, arguments: Sequence[str] | None = None) -> None:
    """Measure a suite from the command line, print its table and keep its figures as CSV."""
    parser = argparse.ArgumentParser(description=description)
    add_options(parser)
    parser.add_argument("--contender", choices=CONTENDERS, default="zorder")
    given = parser.parse_args(arguments)
    folder = given.data or suite.data(given.scale)
    asked = numbers(given.queries, suite.generate(folder, given.scale))
    tables = Tables(suite, given.contender, given.scale, given.files)
    spark = tables.open_session()
    console = Console(width=140)
    console.print(f"files of {given.contender}:", tables.build(spark, folder))
    out = given.out / f"{suite.name}{'' if given.contender == 'zorder' else '_' + given.contender}.csv"
    lines = run(
        suite, asked, lambda number, sql: measure(spark, number, sql, given.turns, given.contender), out, console
    )
    console.print(summarize(lines))
