"""Compare a clustered write with a plain copy, a plain shuffle and ORDER BY: ``python -m bench.kernel_time``.

ORDER BY is written as a user would write it for the same number of files: ``repartitionByRange`` and
``sortWithinPartitions``. Each ratio is of medians of interleaved runs; see ``Meter``. Each build has its columns in
another order and draws another sample, see ``fresh``.
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, bytes_of, fact, fresh, kept, narrow, ordered, wide
from bench.figures import figures_beside, keep_figures
from bench.measure import SETTINGS, Cost, Meter
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster

RESULTS = Path(__file__).parent / "results"
OUTPUT = DATA / "output"
NARROW_KEYS = ["customer_id", "event_ts", "product_id", "sku", "store_id", "score", "price", "quantity"]
FACT_KEYS = ["c3", "c4", "c2", "c9", "c10", "c11", "c8", "c7"]
WIDE_KEYS = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]


def sized(spark: SparkSession, rows: int, columns: int, keys: int) -> tuple[DataFrame, list[str]]:
    """Return a narrow table where nine columns are asked for, else a wide one, and so many of its keys."""
    if columns == 9:
        return kept(spark, f"narrow_{rows}", partial(narrow, spark, rows)), NARROW_KEYS[:keys]
    return kept(spark, f"wide_{columns}_{rows}", partial(wide, spark, rows, columns)), WIDE_KEYS[:keys]


def compare(meter: Meter, df: DataFrame, keys: list[str], files: int, repeats: int) -> dict[str, Cost]:
    """Measure the ways to write ``df``; a plain shuffle, without any order, bounds what sends rows to their files."""
    builds = count()

    def write(df: DataFrame, name: str) -> None:
        df.write.mode("overwrite").parquet(str(OUTPUT / name))

    return meter.in_turn(
        {
            "copy": lambda: write(fresh(df, next(builds)), "copy"),
            "shuffle": lambda: write(fresh(df, next(builds)).repartition(files, keys[0]), "shuffle"),
            "order": lambda: write(ordered(fresh(df, next(builds)), files, keys), "order"),
            "cluster": lambda: write(
                cluster(fresh(df, number := next(builds)), keys, files=files, seed=number), "cluster"
            ),
        },
        repeats,
    )


def main() -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of 10 M narrow and 5 M fact rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=["narrow", "fact", "wide"])
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    meter = Meter(spark)
    cases: list[tuple[str, DataFrame, list[str]]] = []
    if "narrow" in arguments.sets:
        rows = int(10 * MILLION * arguments.scale)
        df = kept(spark, f"narrow_{rows}", lambda: narrow(spark, rows))
        cases += [(f"{rows / MILLION:g} M x 9 columns", df, NARROW_KEYS[:keys]) for keys in (2, 4)]
    if "fact" in arguments.sets:
        rows = int(5 * MILLION * arguments.scale)
        df = kept(spark, f"fact_{rows}", lambda: fact(spark, rows))
        cases += [(f"{rows / MILLION:g} M x 23 columns", df, FACT_KEYS[:keys]) for keys in (2, 4)]
    if "wide" in arguments.sets:
        for columns in (9, 60, 150, 300):
            rows = int(arguments.scale * 60 * MILLION / columns / 4)
            df = kept(spark, f"wide_{columns}_{rows}", partial(wide, spark, rows, columns))
            cases += [(f"{rows / MILLION:g} M x {columns} columns", df, WIDE_KEYS[:keys]) for keys in (2, 4, 8)]
    table = Table(title="A clustered write into 16 files, as a ratio to ORDER BY on the same columns")
    headings = [
        "table",
        "keys",
        "wall",
        "CPU",
        "copy's CPU",
        "shuffle's CPU",
        "extra CPU over a copy / ORDER BY's extra",
        "bytes",
        "peak memory",
        "times that the input is opened",
        "by ORDER BY",
    ]
    for heading in headings:
        table.add_column(heading)
    figures = RESULTS / "kernel_time.csv"
    lines: list[dict[str, Any]] = []
    for done, (name, df, keys) in enumerate(cases, 1):
        costs = compare(meter, df, keys, 16, arguments.repeats)
        for way, cost in costs.items():
            lines.append(
                {
                    "table": name,
                    "keys": len(keys),
                    "way": way,
                    "wall_seconds": round(cost.wall, 2),
                    "cpu_seconds": round(cost.cpu, 2),
                    "bytes": bytes_of(OUTPUT / way),
                    "peak_heap_bytes": cost.peak,
                    "bytes_read": cost.read,
                }
            )
        again = [(name, str(len(keys))) for name, _, keys in cases[:done]]
        keep_figures([*figures_beside(figures, ("table", "keys"), again), *lines], figures)
        copy, order, ours = costs["copy"], costs["order"], costs["cluster"]
        extra = (ours.cpu - copy.cpu) / (order.cpu - copy.cpu)
        size_ratio = bytes_of(OUTPUT / "cluster") / bytes_of(OUTPUT / "order")
        row = [ours.wall / order.wall, ours.cpu / order.cpu, copy.cpu / order.cpu]
        row += [costs["shuffle"].cpu / order.cpu, extra, size_ratio]
        row += [ours.peak / order.peak, ours.read / copy.read, order.read / copy.read]
        table.add_row(name, str(len(keys)), *(f"{ratio:.2f}" for ratio in row))
        Console().print(name, len(keys), *(f"{ratio:.2f}" for ratio in row))
    Console(width=140).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
