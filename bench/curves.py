"""Compare the ways to order a table: ``python -m bench.curves``.

ORDER BY is written as a user would write it. ``plain_z`` cuts the Z-order curve of ranks at equal counts. ``ranks``
cuts files by the k-d tree and orders rows by that curve. Users cannot configure these two: they are the alternatives
over which the default was chosen. Row groups and pages are small, so a small table has as many of them as a large one.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, bytes_of, fact, kept, narrow, ordered
from bench.figures import figures_beside, keep_figures
from bench.kernel_time import FACT_KEYS, NARROW_KEYS, RESULTS
from bench.measure import SETTINGS, Meter
from bench.skipping import Blocks, Touched
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.layout.curve import Curve
from dbt_zorder.layout.curves import lay_out
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION
from dbt_zorder.layout.sample import draw, wanted_rows
from dbt_zorder.layout.spec import LayoutSpec, keys_for

OUTPUT = DATA / "curves"
PAGE_ROWS = 1000
GROUP_BYTES = 1 << 20
HEADINGS = ("cpu", "wall", "bytes", "files", "groups", "pages", "range: files", "box: files")
QUERIES = 300

Found = Mapping[tuple[str, str], Touched]
"""What queries touch, by their kind and column."""


def along(df: DataFrame, by: list[str], files: int, curve: Curve) -> DataFrame:
    """Cluster by a curve that users cannot ask for, sampled as the others are."""
    keys = keys_for(df, LayoutSpec(by=by))
    whole = np.zeros(1, dtype=np.int64)
    rows = df.count()
    sample = draw(df, keys, wanted_rows(files, keys), rows, 0, None, whole)
    _, layout = lay_out(curve, sample, keys, [files], None, [], whole, rows)
    return apply_layout(df, layout)


def ways(df: DataFrame, by: list[str], files: int) -> dict[str, Callable[[], DataFrame]]:
    """Return the contenders by name."""
    return {
        "order": lambda: ordered(df, files, by),
        "linear": lambda: cluster(df, by, files=files, curve="linear"),
        "plain_z": lambda: along(df, by, files, Curve("zorder", "rank", cuts_files=True)),
        "zorder": lambda: cluster(df, by, files=files, page_rows=PAGE_ROWS),
        "ranks": lambda: along(df, by, files, Curve("zorder", "rank")),
        "bits": lambda: cluster(df, by, files=files, encoding="bits"),
        "hilbert": lambda: cluster(df, by, files=files, curve="hilbert"),
        "hilbert_bits": lambda: cluster(df, by, files=files, curve="hilbert", encoding="bits"),
    }


def write(name: str, make: Callable[[], DataFrame]) -> None:
    """Write a contender with small row groups and pages."""
    writer = make().write.mode("overwrite").option("parquet.block.size", GROUP_BYTES)
    writer.option(PAGE_ROWS_OPTION, PAGE_ROWS).parquet(str(OUTPUT / name))


def ratios(found: Found, keys: int, files: int) -> list[float]:
    """Return for point queries on the worst column files as a ratio to F^((k-1)/k) and shares of row groups and pages.

    Then files of a range of 1% of the worst column, and of a box of 10% of the first two.
    """
    points = [here for (kind, _), here in found.items() if kind == "point"]
    return [
        max(here.files for here in points) / files ** (1 - 1 / keys),
        max(here.row_groups / here.all_row_groups for here in points),
        max(here.pages / here.all_pages for here in points),
        max(here.files for (kind, _), here in found.items() if kind == "range"),
        found["box", ""].files,
    ]


def main() -> None:
    """Print the tables and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=4, help="millions of rows")
    parser.add_argument("--files", type=int, nargs="*", default=[16])
    parser.add_argument("--keys", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=["narrow", "fact"])
    parser.add_argument("--ways", nargs="*", default=[], help="all by default; 'order' is always measured")
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    meter = Meter(spark)
    rows = int(arguments.rows * MILLION)
    makers = {"narrow": (narrow, NARROW_KEYS), "fact": (fact, FACT_KEYS)}
    figures = RESULTS / "curves.csv"
    lines: list[dict[str, Any]] = []
    again: list[tuple[str, ...]] = []
    for name, keys, files in product(arguments.sets, arguments.keys, arguments.files):
        make, columns = makers[name]
        by = columns[:keys]
        df = kept(spark, f"{name}_{rows}", partial(make, spark, rows))
        contenders = {
            way: run
            for way, run in ways(df, by, files).items()
            if not arguments.ways or way in ("order", *arguments.ways)
        }
        costs = meter.in_turn({way: partial(write, way, run) for way, run in contenders.items()}, arguments.repeats)
        table = Table("way", *HEADINGS, title=f"{name}, {rows / MILLION:g} M rows, {keys} keys, {files} files")
        base = costs["order"]
        for way, cost in costs.items():
            blocks = Blocks(sorted((OUTPUT / way).glob("*.parquet")), by, PAGE_ROWS)
            found = {place: blocks.touched(queries) for place, queries in blocks.kinds(by, QUERIES).items()}
            size = bytes_of(OUTPUT / way)
            wrote = {"cpu_seconds": f"{cost.cpu:.2f}", "wall_seconds": f"{cost.wall:.2f}", "bytes": size}
            case = {"table": name, "keys": keys, "files": files, "way": way}
            lines += [{**case, **wrote, **_line(*place, here)} for place, here in found.items()]
            again.append((name, str(keys), str(files), way))
            spent = (cost.cpu / base.cpu, cost.wall / base.wall, size / bytes_of(OUTPUT / "order"))
            table.add_row(way, *(f"{value:.3f}" for value in (*spent, *ratios(found, keys, files))))
        # the file has the cases of other runs, too
        keep_figures([*figures_beside(figures, ("table", "keys", "files", "way"), again), *lines], figures)
        Console(width=140).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


def _line(query: str, column: str, here: Touched) -> dict[str, Any]:
    return {
        "query": query,
        "column": column,
        "files_touched": f"{here.files:.2f}",
        "row_groups": f"{here.row_groups:.2f}",
        "of_row_groups": here.all_row_groups,
        "pages": f"{here.pages:.2f}",
        "of_pages": here.all_pages,
    }


if __name__ == "__main__":
    main()
