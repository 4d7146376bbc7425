"""Compare sizes of row groups and pages for plain SQL: ``python -m bench.blocks``.

One table has one layout and is written with each pair of ``parquet.block.size`` and ``parquet.page.row.count.limit``.
The figures are the time of the write, the bytes on disk, and the times of point queries and of ranges of 1%. The
queries are plain SQL, which opens every file and skips parts of it by footers and page indexes. Ratios are to Spark's
defaults, 128 MB and 20,000 rows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, bytes_of
from bench.figures import keep_figures
from bench.kernel_time import RESULTS, sized
from bench.measure import SETTINGS, Cost, Meter, in_order_of, seconds
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION

OUTPUT = DATA / "blocks"
DEFAULT = (128.0, 20_000)
KINDS = ("point", "range")
Sizes = tuple[float, int]


def predicate(kind: str, key: str, number: int) -> str:
    """Return what a query asks for: a value that the table need not have, or 1% of it; another one each time."""
    place = number * 7_919_993 % 990_000_000
    if key == "customer_id":
        return f"{key} = {place}" if kind == "point" else f"{key} BETWEEN {place} AND {place + 10_000_000}"
    start = 1_600_000_000_000_000 + place * 100_000
    if kind == "point":
        return f"{key} = timestamp_micros({start})"
    return f"{key} BETWEEN timestamp_micros({start}) AND timestamp_micros({start + 1_000_000_000_000})"


def write(spark: SparkSession, rows: int, keys: Sequence[str], files: int, sizes: Sizes) -> None:
    """Lay rows out and write them; the order inside files is as fine as the pages ask for."""
    df, _ = sized(spark, rows, 9, 2)
    writer = cluster(df, list(keys), files=files, page_rows=sizes[1]).write.mode("overwrite")
    writer = writer.option("parquet.block.size", int(sizes[0] * 2**20)).option(PAGE_ROWS_OPTION, sizes[1])
    writer.parquet(folder_of(sizes))


def folder_of(sizes: Sizes) -> str:
    """Return where a table of these sizes lies."""
    return str(OUTPUT / f"{sizes[0]:g}_{sizes[1]}")


def query_seconds(
    spark: SparkSession, grid: Sequence[Sizes], key: str, kind: str, turns: int, numbers: Iterator[int]
) -> dict[Sizes, float]:
    """Return medians of the seconds of one kind of query, asked of all tables in turn; no value is asked for twice."""
    tables = {sizes: spark.read.parquet(folder_of(sizes)) for sizes in grid}
    spent: dict[Sizes, list[float]] = {sizes: [] for sizes in grid}
    for turn in range(turns):
        for sizes in in_order_of(turn, grid):
            asked = tables[sizes].where(predicate(kind, key, next(numbers)))
            spent[sizes].append(seconds(asked.selectExpr("count(*)", "sum(price)", "max(sku)").collect))
    return {sizes: statistics.median(found[2:]) for sizes, found in spent.items()}


def main() -> None:
    """Print the table and keep it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=10, help="millions")
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--groups", type=float, nargs="*", default=[128, 8, 2], help="MB")
    parser.add_argument("--pages", type=int, nargs="*", default=[20_000, 5_000, 1_000], help="rows")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--turns", type=int, default=12, help="number of turns; the first two are not counted")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    rows = int(arguments.rows * MILLION)
    keys = sized(spark, rows, 9, 2)[1]
    grid: list[Sizes] = [DEFAULT, *(pair for pair in product(arguments.groups, arguments.pages) if pair != DEFAULT)]
    costs: dict[str, Cost] = Meter(spark).in_turn(
        {folder_of(sizes): partial(write, spark, rows, keys, arguments.files, sizes) for sizes in grid},
        arguments.repeats,
    )
    numbers = count(1)
    asked = {
        (kind, key): query_seconds(spark, grid, key, kind, arguments.turns, numbers) for kind in KINDS for key in keys
    }
    lines: list[dict[str, Any]] = []
    for sizes in grid:
        folder = Path(folder_of(sizes))
        groups = [pq.ParquetFile(path).metadata.num_row_groups for path in folder.glob("*.parquet")]
        line = {"row_group_mb": sizes[0], "page_rows": sizes[1], "row_groups_a_file": statistics.mean(groups)}
        cost = costs[folder_of(sizes)]
        line |= {"cpu_seconds": round(cost.cpu, 2), "wall_seconds": round(cost.wall, 2), "bytes": bytes_of(folder)}
        line |= {f"{kind}_{key}_seconds": round(found[sizes], 4) for (kind, key), found in asked.items()}
        lines.append(line)
    keep_figures(lines, arguments.out / "blocks.csv")
    table = Table(*lines[0], title=f"{arguments.rows:g} M rows, {arguments.files} files, beside Spark's defaults")
    for line in lines:
        same = {name: value for name, value in line.items() if name in ("row_group_mb", "page_rows")}
        cells = [f"{same[name]:g}" if name in same else f"{value / lines[0][name]:.2f}" for name, value in line.items()]
        table.add_row(*cells)
    Console(width=180).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
