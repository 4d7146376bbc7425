"""Compare tables laid out by Spark and in this process with ORDER BY: ``python -m bench.in_memory``.

The time is from the query to the table in the catalog, by ``save_table``. It is the path of a ``dbt run`` that builds a
table for the first time. Each build has its columns in another order and draws another sample. Therefore no build
reuses the compiled code of the build before. A case of ``grouped`` rows is a query with an aggregate, which runs only
once.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import MILLION, events, fact, fresh, kept, ordered
from bench.figures import figures_beside, keep_figures
from bench.kernel_time import FACT_KEYS, RESULTS, sized
from bench.measure import SETTINGS, Meter
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.save import save_table


@dataclass(frozen=True)
class Case:
    """A table: million rows, columns, keys and files; ``grouped`` if its query has an aggregate; its curve.

    Seven columns are those of ``events``, three nested ones among them.
    """

    millions: float
    columns: int
    keys: int
    files: int
    grouped: bool = False
    curve: str = "zorder"
    encoding: str = "rank"

    @property
    def query(self) -> str:
        """What is done with the rows, as tables have it."""
        how = [self.curve] * (self.curve != "zorder") + [self.encoding] * (self.encoding != "rank")
        return " ".join(["grouped" if self.grouped else "scan", *how])


SETS = {
    "small": [
        Case(0.001, 9, 2, 1),
        Case(0.02, 9, 2, 1),
        Case(0.1, 9, 2, 4),
        Case(0.3, 9, 2, 16),
        Case(0.3, 9, 4, 16),
        Case(1.0, 9, 2, 16),
        Case(1.0, 9, 2, 1),
    ],
    "large": [
        Case(3.0, 9, 2, 16),
        Case(3.0, 9, 2, 500),
        Case(10.0, 9, 2, 16),
        Case(10.0, 9, 4, 16),
    ],
    "fact": [Case(5.0, 23, 2, 16), Case(5.0, 23, 4, 16)],
    "wide": [
        Case(0.03, 60, 4, 16),
        Case(0.25, 60, 2, 16),
        Case(0.25, 60, 8, 16),
        Case(0.1, 150, 4, 16),
        Case(0.01, 300, 4, 4),
        Case(0.05, 300, 4, 16),
        Case(0.05, 300, 8, 16),
    ],
    "nested": [Case(0.1, 7, 2, 4), Case(2.0, 7, 2, 16)],
    "curves": [
        Case(3.0, 9, 2, 16, curve="hilbert"),
        Case(3.0, 9, 2, 16, curve="linear"),
        Case(3.0, 9, 2, 16, encoding="bits"),
    ],
    "grouped": [Case(0.02, 9, 2, 1, True), Case(0.3, 9, 2, 16, True), Case(3.0, 9, 2, 16, True)],
}

SCHEMA = "in_memory"
NAMES = ("rows", "columns", "keys", "files", "query")


def rows_of(spark: SparkSession, case: Case, scale: float) -> tuple[DataFrame, list[str]]:
    """Return the query of a case, and its keys."""
    rows = int(case.millions * MILLION * scale)
    if case.columns == 23:
        return kept(spark, f"fact_{rows}", lambda: fact(spark, rows)), FACT_KEYS[: case.keys]
    if case.columns == 7:
        return kept(spark, f"events_{rows}", lambda: events(spark, rows)), ["customer_id", "event_ts"]
    return sized(spark, rows, case.columns, case.keys)


def grouped(df: DataFrame) -> DataFrame:
    """Return the same rows by a query with an aggregate."""
    return df.groupBy("id").agg(*(f.max(name).alias(name) for name in df.columns if name != "id"))


def main() -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session({"spark.driver.memory": "9g", **SETTINGS}, str(OUTPUT / "session_in_memory"))
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    meter = Meter(spark)
    builds, seeds = count(), count()
    made: list[TableName] = []

    def new_table() -> TableName:
        made.append(TableName(SCHEMA, f"in_memory_{len(made)}"))
        return made[-1]

    def query(df: DataFrame, case: Case) -> DataFrame:
        found = fresh(df, next(builds))
        return grouped(found) if case.grouped else found

    def copy(df: DataFrame, case: Case) -> None:
        query(df, case).write.saveAsTable(new_table().sql)

    def order(df: DataFrame, case: Case, keys: list[str]) -> None:
        ordered(query(df, case), case.files, keys).write.saveAsTable(new_table().sql)

    def cluster(df: DataFrame, case: Case, keys: list[str], in_memory: str | None) -> None:
        save_table(
            query(df, case),
            str(new_table()),
            keys,
            files=case.files,
            curve=case.curve,
            encoding=case.encoding,
            in_memory=in_memory,
            seed=next(seeds),
        )

    ways = {"spark": "never", "here": None}
    headings = [f"{way}: {measure}" for measure in ("wall", "CPU", "extra", "memory") for way in ways]
    table = Table("table", "keys", "files", *headings, title="/ ORDER BY")
    figures = arguments.out / "in_memory.csv"
    lines: list[dict[str, Any]] = []
    done: list[tuple[str, ...]] = []
    for case in [case for name in arguments.sets for case in SETS[name]]:
        df, keys = rows_of(spark, case, arguments.scale)
        costs = meter.in_turn(
            {
                "copy": partial(copy, df, case),
                "order": partial(order, df, case, keys),
                **{way: partial(cluster, df, case, keys, most) for way, most in ways.items()},
            },
            arguments.repeats,
        )
        for name in made:
            if not drop_table(spark, name):
                spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
        made.clear()
        rows = int(case.millions * MILLION * arguments.scale)
        inputs = (f"{rows}", f"{case.columns}", f"{case.keys}", f"{case.files}", case.query)
        done.append(inputs)
        for way, cost in costs.items():
            measured = (("wall_seconds", cost.wall), ("cpu_seconds", cost.cpu))
            figures_of = {name: round(value, 2) for name, value in measured}
            lines.append({**dict(zip(NAMES, inputs, strict=True)), "way": way, **figures_of, "peak_bytes": cost.peak})
        plain, base = costs["copy"], costs["order"]
        found = [costs[way] for way in ways]
        ratios = [cost.wall / base.wall for cost in found] + [cost.cpu / base.cpu for cost in found]
        ratios += [(cost.cpu - plain.cpu) / (base.cpu - plain.cpu) for cost in found]
        ratios += [cost.peak / base.peak for cost in found]
        shown = [f"{rows:,} x {inputs[1]} {inputs[4]}", inputs[2], inputs[3], *(f"{ratio:.2f}" for ratio in ratios)]
        table.add_row(*shown)
        Console(width=140).print(*shown)
        keep_figures([*figures_beside(figures, NAMES, done), *lines], figures)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
