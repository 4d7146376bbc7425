"""Compare encodings: both versions of Parquet's own writer and two codecs, ``python -m bench.encodings``.

With ``options: {parquet.writer.version: v2}``, the writer stores differences of whole numbers and texts where a
dictionary saves nothing. ORDER BY into Parquet and ``save_table`` write the same tables with each version and codec.
The figures are the time of the whole pipeline, the bytes on disk, and Spark's reading times. Spark reads all columns,
the greatest values of three columns, and points on either key by plain SQL. Ratios are to ORDER BY with Spark's
defaults, v1 and Snappy.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench import in_memory
from bench.contenders import path_of
from bench.datasets import DATA, ordered
from bench.figures import figures_beside, keep_figures
from bench.kernel_time import RESULTS
from bench.measure import SETTINGS, Meter, in_order_of, seconds
from bench.sources import source
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.engine.parquet.encodings import VERSION_OPTION
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.save import save_table

SCHEMA = "encodings"
FILES = 16
WAYS = ("ORDER BY", "dbt-zorder")
VERSIONS, CODECS = ("v1", "v2"), ("snappy", "zstd")
Chosen = tuple[str, str, str]
"""Way, version, codec."""
Queries = Mapping[str, Callable[[DataFrame, int], object]]
Seconds = dict[str, float]


def rows_of(spark: SparkSession, name: str, size: float) -> tuple[DataFrame, list[str]]:
    """Return rows and keys of a table: lineitem of a scale, or millions of rows of 9 or of 23 columns."""
    if name == "lineitem":
        made = source(name, size)
        return spark.read.parquet(str(made.rows)), made.keys
    return in_memory.rows_of(spark, in_memory.Case(size, 9 if name == "narrow" else 23, 2, FILES), 1.0)


def table_of(chosen: Chosen) -> TableName:
    """Return the table of a way."""
    return TableName(SCHEMA, "_".join(("ours" if chosen[0] == WAYS[1] else "ordered", *chosen[1:])))


def write(df: DataFrame, keys: Sequence[str], files: int, chosen: Chosen) -> None:
    """Make a table anew."""
    way, version, codec = chosen
    table, options = table_of(chosen), {VERSION_OPTION: version, "compression": codec}
    if way == WAYS[1]:
        save_table(df, str(table), keys, "overwrite", files=files, options=options, keep_versions=1, grace_hours=0)
        return
    ordered(df, files, list(keys)).write.mode("overwrite").options(**options).saveAsTable(table.sql)


def queries(df: DataFrame, keys: Sequence[str]) -> Queries:
    """Return by name what is asked of a table in a turn."""
    points = {key: [row[0] for row in df.select(key).sample(0.001, 7).limit(40).collect()] for key in keys}
    greatest = [f"max(`{name}`)" for name in df.columns]

    def point(key: str, rows: DataFrame, turn: int) -> object:
        return rows.where(rows[key] == points[key][turn]).selectExpr("count(*)", *greatest).collect()

    return {
        "all_columns": lambda rows, _: rows.write.format("noop").mode("overwrite").save(),
        "three_columns": lambda rows, _: rows.selectExpr(*greatest[:3]).collect(),
        **{f"point_{number}": partial(point, key) for number, key in enumerate(keys, 1)},
    }


def query_seconds(spark: SparkSession, df: DataFrame, keys: Sequence[str], turns: int) -> dict[Chosen, Seconds]:
    """Return medians of the seconds of each query, asked of all tables in turn."""
    spent: dict[Chosen, dict[str, list[float]]] = {}
    tables = {chosen: spark.table(table_of(chosen).sql) for chosen in product(WAYS, VERSIONS, CODECS)}
    for name, ask in queries(df, keys).items():
        for turn in range(turns):
            for chosen in in_order_of(turn, tables):
                found = seconds(partial(ask, tables[chosen], turn))
                spent.setdefault(chosen, {}).setdefault(name, []).append(found)
    return {
        chosen: {name: statistics.median(found[2:]) for name, found in asked.items()} for chosen, asked in spent.items()
    }


def measure(spark: SparkSession, name: str, size: float, files: int, repeats: int, turns: int) -> list[dict[str, Any]]:
    """Return the figures of a table, a line for each way, version and codec."""
    df, keys = rows_of(spark, name, size)
    every: list[Chosen] = list(product(WAYS, VERSIONS, CODECS))
    work = {"_".join(chosen): partial(write, df, keys, files, chosen) for chosen in every}
    costs = Meter(spark).in_turn(work, repeats)
    asked = query_seconds(spark, df, keys, turns)
    lines = []
    for chosen in every:
        cost = costs["_".join(chosen)]
        line: dict[str, Any] = {"table": name, "size": f"{size:g}"}
        line |= dict(zip(("way", "version", "codec"), chosen, strict=True))
        line |= {"wall_seconds": round(cost.wall, 2), "cpu_seconds": round(cost.cpu, 2)}
        line |= {"bytes": sum(path_of(uri).stat().st_size for uri in spark.table(table_of(chosen).sql).inputFiles())}
        lines.append(line | {f"{query}_seconds": round(found, 4) for query, found in asked[chosen].items()})
        drop_table(spark, table_of(chosen))
    return lines


def main() -> None:
    """Print the tables and keep them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=["lineitem", "narrow", "fact"])
    parser.add_argument("--sizes", type=float, nargs="*", default=[1, 3, 4], help="scale of lineitem, millions of rows")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9, help="number of turns; the first two are not counted")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    lines: list[dict[str, Any]] = []
    for name, size in zip(arguments.sets, arguments.sizes, strict=True):
        found = measure(spark, name, size, arguments.files, arguments.repeats, arguments.turns)
        table = Table(*list(found[0])[2:], title=f"{name} {size:g}, {arguments.files} files, beside ORDER BY")
        for line in found:
            cells = [value if isinstance(value, str) else f"{value / found[0][key]:.2f}" for key, value in line.items()]
            table.add_row(*cells[2:])
        Console(width=200).print(table)
        lines += found
    kept = figures_beside(arguments.out / "encodings.csv", ["table"], [[name] for name in arguments.sets])
    keep_figures([*kept, *lines], arguments.out / "encodings.csv")


if __name__ == "__main__":
    main()
