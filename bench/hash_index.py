"""Measure a hash index on lineitem and orders beside the same tables without one: ``python -m bench.hash_index``.

Both pairs of tables are z-ordered, by the ship date and by the order date and customer. The indexed pair is
``clustered_by`` the order key. Measured are builds, a join and an aggregate by that key, a look-up of a key by plain
SQL, and the files that a point query on a z-ordered column reads. The rows of both must be equal.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import COUNTED, bytes_read, seconds_in_turn
from bench.suites import Fact, Suite, Tables
from bench.tpch import generate
from dbt_zorder.pruning import explain
from dbt_zorder.tables.save import save_table

BY = {"lineitem": ["l_shipdate", "l_partkey"], "orders": ["o_orderdate", "o_custkey"]}
KEYS = {"lineitem": "l_orderkey", "orders": "o_orderkey"}
POINTS = {"lineitem": "l_partkey = 7777", "orders": "o_custkey = 7777"}
PAIRS = ("plain", "indexed")
_TABLES = "{0}_lineitem JOIN {0}_orders ON l_orderkey = o_orderkey"
QUERIES = {
    "join": f"SELECT o_orderpriority, count(*), sum(l_quantity), sum(o_totalprice) FROM {_TABLES} GROUP BY ALL",
    "aggregate": "SELECT count(*), sum(q) FROM (SELECT l_orderkey, sum(l_quantity) q FROM {0}_lineitem GROUP BY 1)",
    "look-up": "SELECT count(*), sum(l_quantity), sum(l_extendedprice) FROM {0}_lineitem WHERE l_orderkey = 1000005",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure from the command line, and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    suite = Suite("hash_index", {"lineitem": Fact(BY["lineitem"])}, generate)
    folder = given.data or suite.data(given.scale)
    generate(folder, given.scale)
    tables = Tables(suite, "zorder", given.scale, given.files)
    # a broadcast of the small side would hide what a shuffle costs
    spark = tables.open_session({"spark.sql.autoBroadcastJoinThreshold": "-1", **COUNTED})
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {tables.schema}")
    spark.sql(f"USE {tables.schema}")
    console = Console(width=140)
    lines: list[dict[str, object]] = []

    def note(**figures: object) -> None:
        lines.append({"files": given.files, "buckets": given.buckets, **figures})
        console.print(*(f"{name}={value}" for name, value in lines[-1].items()), highlight=False)

    for name in BY:
        rows = spark.read.parquet(str(folder / f"{name}.parquet"))
        took = _in_turn({pair: _build(rows, pair, name, given.files, given.buckets) for pair in PAIRS}, given.turns)
        note(what=f"build of {name}", **took)
        for pair in PAIRS:
            found = explain(spark, f"{pair}_{name}", POINTS[name])
            note(what=f"{POINTS[name]}, {pair}", read=found.files_read, of=found.files_total)
    for what, query in QUERIES.items():
        shown: dict[str, str] = {}
        for pair in PAIRS:
            df, before = spark.sql(query.format(pair)), bytes_read(spark)
            shown[pair] = str(sorted(map(tuple, df.collect())))
            note(what=f"{what}, {pair}", read=bytes_read(spark) - before, exchanges=_exchanges(spark, query, pair))
        assert shown["plain"] == shown["indexed"]
        asked = {pair: _ask(spark, query.format(pair)) for pair in PAIRS}
        note(what=what, **_in_turn(asked, 2 * given.turns - 1))
    keep_figures(lines, given.out / f"hash_index_{given.buckets}.csv")


def _build(rows: DataFrame, pair: str, name: str, files: int, buckets: int) -> Callable[[], object]:
    index = {"clustered_by": KEYS[name], "buckets": buckets} if pair == "indexed" else {}
    many = files if name == "lineitem" else max(1, files // 4)
    return lambda: save_table(rows, f"{pair}_{name}", BY[name], "overwrite", files=many, **index)  # type: ignore[arg-type]


def _ask(spark: SparkSession, query: str) -> Callable[[], object]:
    return lambda: spark.sql(query).collect()


def _exchanges(spark: SparkSession, query: str, pair: str) -> int:
    """Return the number of shuffles by the key: the plan shows the key in each of them."""
    plan = str(spark.sql(query.format(pair))._jdf.queryExecution().executedPlan().toString())
    return sum("Exchange hashpartitioning" in line and "orderkey" in line for line in plan.splitlines())


def _in_turn(ways: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Return the median seconds of each way, and their ratio."""
    found = seconds_in_turn(ways, turns)
    return found | {"ratio": round(found["indexed"] / found["plain"], 3)}


if __name__ == "__main__":
    main()
