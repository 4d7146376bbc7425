"""Measure how time grows with rows and with files: ``python -m bench.growth``.

Slopes are of logarithms: 1 is proportional growth. Spark lays tables out as on a cluster, and ``save_table`` lays them
out like a ``dbt run`` on one machine. ORDER BY and Spark's layouts are written to a folder. ``save_table`` also creates
a new table in the catalog and stores its stats, which the others omit. Its time includes this extra work.
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, kept, narrow, ordered
from bench.figures import keep_figures
from bench.measure import SETTINGS, Meter
from bench.plots import keep_plot
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.save import save_table

RESULTS = Path(__file__).parent / "results"
OUTPUT = DATA / "growth"
KEYS = ["customer_id", "event_ts"]
SCHEMA = "growth"
BY_SPARK, SAVED = "dbt-zorder, by Spark", "dbt-zorder, save_table"
WAYS = ("ORDER BY", BY_SPARK, SAVED)


def write(way: str, df: DataFrame, files: int, made: list[TableName]) -> None:
    """Write the rows in order; a table that is made for it is noted."""
    if way == SAVED:
        made.append(TableName(SCHEMA, f"growth_{len(made)}"))
        save_table(df, str(made[-1]), KEYS, files=files)
        return
    rows = cluster(df, KEYS, files=files) if way == BY_SPARK else ordered(df, files, KEYS)
    rows.write.mode("overwrite").parquet(str(OUTPUT))


def slope(xs: list[float], ys: list[float]) -> float:
    """Return the slope of a line through logarithms."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def main() -> None:
    """Print the table, keep the figures as CSV and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="*", default=[1, 3, 10, 30], help="millions, in 16 files")
    parser.add_argument("--files", type=int, nargs="*", default=[16, 125, 500, 2000], help="of --of million rows")
    parser.add_argument("--of", type=float, default=3)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    meter = Meter(spark)
    made: list[TableName] = []
    series = {
        "rows, millions": [(millions, millions, 16) for millions in arguments.rows],
        "files": [(float(files), arguments.of, files) for files in arguments.files],
    }
    table = Table("against", "value", "way", "seconds", "CPU seconds", title="Seconds of a clustered write")
    lines = []
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots(1, 2)
    for place, (against, points) in enumerate(series.items()):
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        processors: dict[str, list[float]] = {way: [] for way in WAYS}
        for value, millions, files in points:
            rows = int(millions * MILLION)
            df = kept(spark, f"narrow_{rows}", partial(narrow, spark, rows))
            costs = meter.in_turn({way: partial(write, way, df, files, made) for way in WAYS}, arguments.repeats)
            for name in made:
                drop_table(spark, name)
            made.clear()
            for way, cost in costs.items():
                seconds[way].append(cost.wall)
                processors[way].append(cost.cpu)
                lines.append([against, f"{value:g}", way, f"{cost.wall:.2f}", f"{cost.cpu:.2f}"])
                table.add_row(*lines[-1])
        xs = [value for value, _, _ in points]
        for way in WAYS:
            grows = slope(xs, seconds[way])
            axes[place].loglog(xs, seconds[way], marker="o", label=f"{way}, slope {grows:.2f}")
            table.add_row(against, "slope", way, f"{grows:.2f}", f"{slope(xs, processors[way]):.2f}")
        axes[place].set_xlabel(against)
        axes[place].set_ylabel("seconds")
        axes[place].legend()
    names = ("against", "value", "way", "wall_seconds", "cpu_seconds")
    keep_figures([dict(zip(names, line, strict=True)) for line in lines], arguments.out / "growth.csv")
    keep_plot(figure, arguments.out / "growth.csv")
    Console(width=120).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
