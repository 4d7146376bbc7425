"""Compare the pages of Impala's table that an equality query skips, by row order: ``python -m bench.impala``.

Impala's own figures are for (l_partkey, l_suppkey) of lineitem at scale 25, with about 18,000 pages of 64 KiB. Lexical
order skips 99% and 25% of the pages, and Impala's Z-order 99% and 97%. The pages that a layout can skip depend on their
number. Therefore pages are shorter here, for the same number of them.

For comparison, an even split shows what could be skipped: the same table cut equally by its keys into as many pages or
row groups.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, ordered
from bench.skipping import Blocks
from bench.sources import source
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION

RESULTS = Path(__file__).parent / "results"
OUTPUT = DATA / "impala"
TWO = ["l_partkey", "l_suppkey"]
FOUR = [*TWO, "l_shipdate", "l_extendedprice"]
QUERIES = 300
COLUMNS = ["keys", "way", "column", "skipped_files", "skipped_row_groups", "skipped_pages", "pages", "even_split"]
COLUMNS += ["row_groups", "even_split_row_groups"]


def ways(rows: DataFrame, keys: list[str], files: int, page_rows: int) -> dict[str, Callable[[], DataFrame]]:
    """Return the orders of rows by name."""
    return {
        "as generated": lambda: rows,
        "lexical": lambda: ordered(rows, files, keys),
        "dbt-zorder": lambda: cluster(rows, keys, files=files, page_rows=page_rows),
        "dbt-zorder, hilbert": lambda: cluster(rows, keys, files=files, curve="hilbert"),
        "dbt-zorder, bits": lambda: cluster(rows, keys, files=files, encoding="bits"),
    }


def even_split(blocks: int, keys: int) -> float:
    """Return the share that a query on one of some keys skips of as many blocks, if all keys are cut alike."""
    # of P blocks it touches P^((k-1)/k)
    return float(1 - blocks ** (-1 / keys))


def main() -> None:
    """Print the table and keep it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor")
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--page-rows", type=int, default=330)
    parser.add_argument("--row-group", type=int, default=2 << 20, help="bytes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    found = source("lineitem", arguments.scale)
    spark = open_session({"spark.sql.ansi.enabled": "false"}, str(DATA / "session"))
    rows = spark.read.parquet(str(found.rows))
    table = Table(title=f"lineitem, scale {arguments.scale:g}: share that an equality query skips, mean of {QUERIES}")
    for heading in COLUMNS:
        table.add_column(heading)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "impala.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for keys in (TWO, FOUR):
            for way, make in ways(rows, keys, arguments.files, arguments.page_rows).items():
                written = make().write.mode("overwrite").option("parquet.block.size", arguments.row_group)
                written.option(PAGE_ROWS_OPTION, arguments.page_rows).parquet(str(OUTPUT))
                blocks = Blocks(sorted(OUTPUT.glob("*.parquet")), keys, arguments.page_rows)
                for key in keys:
                    here = blocks.touched(blocks.points(key, QUERIES))
                    shares = (
                        1 - here.files / here.all_files,
                        1 - here.row_groups / here.all_row_groups,
                        1 - here.pages / here.all_pages,
                    )
                    line = [
                        len(keys),
                        way,
                        key,
                        *(f"{share:.4f}" for share in shares),
                        here.all_pages,
                        f"{even_split(here.all_pages, len(keys)):.4f}",
                        here.all_row_groups,
                        f"{even_split(here.all_row_groups, len(keys)):.4f}",
                    ]
                    writer.writerow(line)
                    table.add_row(*map(str, line))
    Console(width=140).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
