"""Measure how much of TPC-DS's fact tables is read, by plain SQL and by ``query``: ``python -m bench.tpcds``.

DuckDB makes the data at scale 1 and the 99 queries. The facts are z-ordered by date, item and customer, the dimensions
are plain tables. Each query runs once to warm up; then it runs as plain SQL and by ``query`` in turn. The rows of both
must be equal.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import Row, SparkSession
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import SETTINGS, in_order_of, seconds
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.pruning import query
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.tables.save import save_table

DATA = OUTPUT.parent / "tpcds"
SCHEMA = "tpcds"
FACTS = {
    "store_sales": (["ss_sold_date_sk", "ss_item_sk", "ss_customer_sk"], 256),
    "catalog_sales": (["cs_sold_date_sk", "cs_item_sk", "cs_bill_customer_sk"], 256),
    "web_sales": (["ws_sold_date_sk", "ws_item_sk", "ws_bill_customer_sk"], 256),
    "inventory": (["inv_date_sk", "inv_item_sk"], 256),
    "store_returns": (["sr_returned_date_sk", "sr_item_sk"], 64),
    "catalog_returns": (["cr_returned_date_sk", "cr_item_sk"], 64),
    "web_returns": (["wr_returned_date_sk", "wr_item_sk"], 64),
}
DATE_WEIGHT = 4
"""Weight of the date beside the other keys, because nearly every query filters by it."""


def generate(folder: Path) -> dict[int, str]:
    """Write the tables as Parquet, unless they are there, and return the queries by number."""
    import duckdb

    queries = folder / "queries.json"
    if not queries.exists():
        folder.mkdir(parents=True, exist_ok=True)
        extension = find_spec("duckdb_extension_tpcds")
        assert extension is not None
        assert extension.origin is not None
        found = next(Path(extension.origin).parent.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension"))
        with duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 1}) as database:
            database.execute(f"LOAD '{found}'")
            database.execute("CALL dsdgen(sf=1)")
            for (table,) in database.execute("SHOW TABLES").fetchall():
                database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")
            asked = database.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
        queries.write_text(json.dumps(asked))
    # Spark quotes names by backticks
    return {
        number: re.sub(r'"([^"]+)"', r"`\1`", text.strip().rstrip(";"))
        for number, text in json.loads(queries.read_text())
    }


def build(spark: SparkSession, folder: Path) -> None:
    """Build the tables that are not yet there."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for path in sorted(folder.glob("*.parquet")):
        name = f"{SCHEMA}.{path.stem}"
        if spark.catalog.tableExists(name):
            continue
        rows = spark.read.parquet(str(path))
        if path.stem in FACTS:
            keys, files = FACTS[path.stem]
            weights = [DATE_WEIGHT] + [1] * (len(keys) - 1)
            save_table(rows, name, keys, files=files, weights=weights)
        else:
            rows.write.saveAsTable(name, format="parquet")
    spark.sql(f"USE {SCHEMA}")


def measure(spark: SparkSession, number: int, sql: str, turns: int) -> dict[str, object]:
    """Return the figures of a query: share of the facts' bytes, seconds of both ways, whether the rows are equal."""
    places = prepare(spark, sql).places
    total = sum(place.bytes for place in places)
    share = sum(place.bytes_read for place in places) / total if total else 1.0
    ways = {"plain": lambda: spark.sql(sql).collect(), "query": lambda: query(spark, sql).collect()}
    equal = _same(ways["plain"](), ways["query"]())
    took: dict[str, list[float]] = {"plain": [], "query": [], "planning": []}
    for turn in range(turns):
        for way in in_order_of(turn, ways):
            took[way].append(seconds(ways[way]))
        took["planning"].append(seconds(lambda: prepare(spark, sql)))
    medians = {way: round(statistics.median(found), 3) for way, found in took.items()}
    rules = dict.fromkeys(rule for place in places for rule in place.rules)
    return {
        "number": number,
        "places": len(places),
        "share": round(share, 4),
        **medians,
        "equal": equal,
        "rules": "; ".join(rules),
    }


def _same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether rows are equal; sums of floats differ in their last digits by the order of the rows."""
    return Counter(map(_rounded, one)) == Counter(map(_rounded, other))


def _rounded(row: Row) -> tuple[object, ...]:
    return tuple(f"{value:.6g}" if isinstance(value, float) else value for value in row)


def summarize(lines: Sequence[dict[str, object]]) -> Table:
    """Return the totals over the queries that read facts."""
    facts = [line for line in lines if line["places"]]
    shares = [float(str(line["share"])) for line in facts]
    table = Table("figure", "value")
    table.add_row("queries", str(len(lines)))
    table.add_row("queries that read facts", str(len(facts)))
    table.add_row("mean share of fact bytes read", f"{statistics.mean(shares):.3f}")
    table.add_row("queries that skip a third and more", str(sum(share <= 2 / 3 for share in shares)))
    table.add_row("queries with other rows", str(sum(not line["equal"] for line in lines)))
    for way in ("plain", "query", "planning"):
        total = sum(float(str(line[way])) for line in lines)
        table.add_row(f"seconds, {way}", f"{total:.1f}")
    table.add_row(
        "median seconds of planning", f"{statistics.median(float(str(line['planning'])) for line in facts):.3f}"
    )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, nargs="*", help="numbers of the queries; all by default")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    asked = generate(given.data)
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4", **SETTINGS}
    spark = open_session(settings, str(OUTPUT / "session_tpcds"))
    build(spark, given.data)
    lines = []
    console = Console(width=140)
    for number, sql in asked.items():
        if not given.queries or number in given.queries:
            lines.append(measure(spark, number, sql, given.turns))
            console.print(*lines[-1].values())
    console.print(summarize(lines))
    keep_figures(lines, given.out / "tpcds.csv")


if __name__ == "__main__":
    main()
