"""Measure the statements that dbt projects and BI tools send, one line each: ``python -m bench.everyday``.

One table of 64 files is z-ordered by time, customer and code; small tables stand beside it. For each statement: the
files that plain SQL and ``query`` read, the least possible, the rule that excludes the others, and whether the rows are
equal. The least is the number of files that contain a row that the statement needs, found by running its filter. A
union counts the files of both of its parts. ``--turns 5`` measures the seconds of both ways, too.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import MILLION
from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import SETTINGS, seconds_in_turn
from bench.statements import Line, same, ways
from bench.suites import numbers
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.tables.save import save_table

SCHEMA = "everyday"
FILES = 64
KEYS = ["ts", "customer_id", "code"]
DAYS = 730
"""Age of the oldest row, in days."""

_TRIES = 3
"""Number of comparisons of a statement whose rows change with the clock."""


@dataclass(frozen=True)
class Statement:
    """A statement over the tables of the schema.

    Attributes:
        kind: what excludes files.
        sql: its text, with dates in braces.
        needs: filters of the rows of ``events`` that it needs, one for each place where it reads them; none if it
            needs no row.
    """

    kind: str
    sql: str
    needs: tuple[str, ...] = ()


def _where(kind: str, *filters: str) -> list[Statement]:
    """Return a statement for each filter of ``events``."""
    return [Statement(kind, f"SELECT * FROM events WHERE {text}", (text,)) for text in filters]


_MALTA = "customer_id IN (SELECT customer_id FROM customers WHERE country = 'Malta')"
_NEWEST = "ts >= (SELECT min(ts) FROM (SELECT ts FROM events{} ORDER BY ts DESC LIMIT 10))"

STATEMENTS = (
    *_where(
        "watermark",
        "ts > (SELECT max(ts) FROM mart)",
        "ts > (SELECT coalesce(max(ts), timestamp'1900-01-01') FROM mart)",
        "ts >= (SELECT max(ts) - INTERVAL 1 DAY FROM mart)",
        "day >= (SELECT date_sub(max(day), 3) FROM mart)",
    ),
    Statement(
        "watermark",
        "WITH last AS (SELECT max(ts) AS ts FROM mart) SELECT e.* FROM events e CROSS JOIN last WHERE e.ts > last.ts",
        ("ts > (SELECT max(ts) FROM mart)",),
    ),
    *_where(
        "clock",
        "ts >= current_timestamp() - INTERVAL 7 DAYS",
        "ts BETWEEN now() - INTERVAL 14 DAYS AND now()",
        "ts >= date_sub(current_date(), 30)",
        "day = current_date() - 1",
        "datediff(current_date(), day) <= 7",
    ),
    Statement(
        "join",
        "SELECT c.name, sum(e.amount) FROM events e JOIN customers c ON e.customer_id = c.customer_id "
        "WHERE c.name = 'customer 42' GROUP BY c.name",
        ("customer_id = 42",),
    ),
    Statement(
        "join",
        "SELECT d.month, sum(e.amount) FROM events e JOIN calendar d ON e.day = d.day WHERE d.month = '{month}' "
        "GROUP BY d.month",
        ("day IN (SELECT day FROM calendar WHERE month = '{month}')",),
    ),
    Statement(
        "join",
        "SELECT c.country, d.month, sum(e.amount) FROM events e JOIN customers c ON e.customer_id = c.customer_id "
        "JOIN calendar d ON e.day = d.day WHERE d.month = '{month}' AND c.country = 'Malta' GROUP BY ALL",
        (f"{_MALTA} AND day IN (SELECT day FROM calendar WHERE month = '{{month}}')",),
    ),
    Statement(
        "join",
        "SELECT r.region, sum(e.amount) FROM events e JOIN customers c ON e.customer_id = c.customer_id "
        "JOIN countries r ON c.country = r.country WHERE r.region = 'islands' GROUP BY r.region",
        (_MALTA,),
    ),
    Statement("join", f"SELECT count(*), sum(amount) FROM events WHERE {_MALTA}", (_MALTA,)),
    Statement(
        "join",
        "SELECT count(*), sum(amount) FROM events e WHERE EXISTS "
        "(SELECT 1 FROM customers c WHERE c.customer_id = e.customer_id AND c.country = 'Malta')",
        (_MALTA,),
    ),
    Statement(
        "join",
        "SELECT count(*), sum(amount) FROM events e LEFT SEMI JOIN codes k ON e.code = k.code AND k.team = 'A'",
        ("code IN (SELECT code FROM codes WHERE team = 'A')",),
    ),
    *_where(
        "function",
        "date_trunc('month', ts) = timestamp'{month}-01'",
        "date_format(ts, 'yyyy-MM') = '{month}'",
        "year(ts) = {year}",
        "cast(ts AS date) = date'{day}'",
        "trunc(day, 'quarter') = trunc(date'{day}', 'quarter')",
        "unix_timestamp(ts) BETWEEN unix_timestamp(timestamp'{day}') AND unix_timestamp(timestamp'{day}') + 86399",
        "date_add(day, 30) > date'{recent}'",
        "ts + INTERVAL 1 DAY > timestamp'{recent}'",
        "customer_id + 1 = 43",
        "coalesce(customer_id, -1) = 42",
        "substr(code, 1, 2) = 'A0'",
        "code RLIKE '^A0'",
        "code ILIKE 'a0%'",
        "(customer_id, code) IN ((42, 'A0-0'), (7, 'Q5-1'))",
    ),
    *_where(
        "filter",
        "customer_id = 42",
        "customer_id IN (3, 42, 97)",
        "customer_id = 42 OR code = 'A0-0'",
        "code LIKE 'A0%'",
        "ts BETWEEN timestamp'{day}' AND timestamp'{day}' + INTERVAL 10 DAYS",
        "customer_id = 42 AND ts >= timestamp'{recent}'",
    ),
    Statement("metadata", "SELECT max(ts) FROM events"),
    Statement("metadata", "SELECT count(*) FROM events"),
    Statement("metadata", "SELECT min(day) AS first, max(day) AS last, count(customer_id) AS customers FROM events"),
    Statement("top-k", "SELECT * FROM events ORDER BY ts DESC LIMIT 10", (_NEWEST.format(""),)),
    Statement(
        "top-k",
        "SELECT * FROM events WHERE customer_id = 42 ORDER BY ts DESC LIMIT 10",
        (f"customer_id = 42 AND {_NEWEST.format(' WHERE customer_id = 42')}",),
    ),
    Statement(
        "composed",
        "WITH recent AS (SELECT * FROM events WHERE ts >= timestamp'{recent}') "
        "SELECT code, count(*), sum(amount) FROM recent WHERE customer_id = 42 GROUP BY code",
        ("ts >= timestamp'{recent}' AND customer_id = 42",),
    ),
    Statement(
        "composed",
        "SELECT 'one' AS who, count(*), sum(amount) FROM events WHERE customer_id = 42 "
        "UNION ALL SELECT 'many', count(*), sum(amount) FROM events WHERE code LIKE 'A0%'",
        ("customer_id = 42", "code LIKE 'A0%'"),
    ),
    Statement(
        "composed",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY ts DESC, id) AS place "
        "FROM events) WHERE place = 1 AND customer_id = 42",
        ("customer_id = 42",),
    ),
)


def dates(today: dt.date) -> Mapping[str, str]:
    """Return the dates of the statements: a day in the middle of the rows, its month and year, and a recent day."""
    day = (today - dt.timedelta(days=400)).replace(day=12)
    recent = today - dt.timedelta(days=20)
    return {"day": f"{day}", "month": f"{day:%Y-%m}", "year": f"{day:%Y}", "recent": f"{recent}"}


def build(spark: SparkSession, rows: int) -> None:
    """Build the tables anew, with rows up to now."""
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    spark.sql(f"USE {SCHEMA}")
    now = int(dt.datetime.now(dt.timezone.utc).timestamp() * 1e6)
    events = (
        spark.range(0, rows, 1, 8)
        .selectExpr(
            "id",
            f"timestamp_micros({now} - cast(rand(1) * {DAYS * 86_400} * 1e6 AS bigint)) AS ts",
            "if(rand(2) < 0.005, NULL, cast(rand(3) * 100 AS int)) AS customer_id",
            "concat(chr(65 + cast(rand(4) * 26 AS int)), cast(rand(5) * 10 AS int), '-', cast(rand(6) * 2 AS int)) "
            "AS code",
            "cast(rand(7) * 1000 AS decimal(9, 2)) AS amount",
            "md5(string(id)) AS session",
        )
        .selectExpr("id", "ts", "cast(ts AS date) AS day", "customer_id", "code", "amount", "session")
    )
    save_table(events, "events", KEYS, files=FILES, stats_columns=["day"])
    mart = spark.table("events").where("ts < current_timestamp() - INTERVAL 3 DAYS")
    save_table(mart, "mart", ["ts", "id"], files=8, stats_columns=["day"])
    country = "CASE WHEN id BETWEEN 40 AND 43 THEN 'Malta' ELSE concat('country ', id DIV 4) END"
    for name, table in {
        "customers": f"SELECT cast(id AS int) AS customer_id, concat('customer ', id) AS name, {country} AS country "
        "FROM range(100)",
        "countries": "SELECT DISTINCT country, if(country = 'Malta', 'islands', 'mainland') AS region FROM customers",
        "calendar": "SELECT day, date_format(day, 'yyyy-MM') AS month FROM (SELECT date_add(current_date(), "
        f"{-DAYS - 2} + cast(id AS int)) AS day FROM range({DAYS + 4}))",
        "codes": "SELECT DISTINCT code, left(code, 1) AS team FROM events",
    }.items():
        spark.sql(f"CREATE TABLE {name} USING parquet AS {table}")


def measure(spark: SparkSession, number: int, statement: Statement, given: Mapping[str, str], turns: int) -> Line:
    """Return the figures of a statement."""
    sql = statement.sql.format(**given)
    pruned = prepare(spark, sql)
    places = [place for place in pruned.places if place.table.endswith("`events`")]
    read = FILES * max(1, len(statement.needs))
    rules = dict.fromkeys(rule for place in places for rule in place.rules)
    reasons = dict.fromkeys(place.reason for place in places if place.reason)
    equal, rows = False, 0
    runs = ways(spark, sql, "zorder")
    for _ in range(_TRIES if statement.kind == "clock" else 1):
        expected, found = runs["plain"](), runs["query"]()
        rows = len(found)
        equal = equal or same(expected, found)
    line: Line = {
        "number": number,
        "kind": statement.kind,
        "plain": read,
        "pruned": sum(place.files_read for place in places) if places else read,
        "least": sum(_files(spark, text.format(**given)) for text in statement.needs),
        "rows": rows,
        "equal": equal,
        "rule": "; ".join(rules),
        "reason": "; ".join(reasons) or ("" if places else pruned.reason),
        "statement": sql,
    }
    line.update({f"seconds_{way}": median for way, median in seconds_in_turn(runs, turns).items()})
    return line


def _files(spark: SparkSession, needed: str) -> int:
    """Return the number of files with a row that passes a filter."""
    counted = f"SELECT count(DISTINCT _metadata.file_path) FROM events WHERE {needed}"
    return int(spark.sql(counted).collect()[0][0])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, nargs="*", help="numbers of the statements; all by default")
    parser.add_argument("--turns", type=int, default=0, help="to measure seconds in; by default none")
    parser.add_argument("--scale", type=float, default=1.0, help="millions of rows")
    parser.add_argument("--data", type=Path, default=OUTPUT / "session_everyday", help="folder of the tables")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    asked = numbers(options.queries, {number: one.sql for number, one in enumerate(STATEMENTS, 1)})
    spark = open_session({"spark.driver.memory": "4g", **SETTINGS}, str(options.data))
    build(spark, int(options.scale * MILLION))
    given = dates(dt.date.today())
    console = Console(width=180)
    table = Table("", "kind", "plain", "query", "least", "equal")
    for name in ("by, or why not", "statement"):
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=60)
    lines: list[Line] = []
    for number in asked:
        line = measure(spark, number, STATEMENTS[number - 1], given, options.turns)
        lines.append(line)
        why = str(line["rule"] or line["reason"])
        shown = [str(line[name]) for name in ("number", "kind", "plain", "pruned", "least", "equal")]
        table.add_row(*shown, why, str(line["statement"]))
        keep_figures(lines, options.out / "everyday.csv")
    console.print(table)
    least = sum(int(str(line["pruned"])) <= int(str(line["least"])) for line in lines)
    unequal = sum(not line["equal"] for line in lines)
    console.print(f"{least} of {len(lines)} statements read their least; {unequal} have other rows.")


if __name__ == "__main__":
    main()
