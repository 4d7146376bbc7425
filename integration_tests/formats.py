"""The model ``flights`` in Parquet, Delta Lake and Iceberg: files that a plain ``select ... where`` reads of each.

python formats.py            builds the model by ``dbt run`` for every target, then reads it
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyspark
from rich.console import Console
from rich.table import Table

from dbt_zorder.adapter.session.format_packages import format_settings
from dbt_zorder.adapter.session.open import SESSION_DIRECTORY
from dbt_zorder.api import open_session, scan, scan_metrics

HERE = Path(__file__).parent
TARGETS = {"dev": "flights", "delta": "flights_delta", "iceberg": "flights_iceberg"}
COLUMNS = {"tailnum": "'{}'", "time_hour": "timestamp'{}'"}
VALUES = 50


def read(target: str) -> dict[str, dict[str, float]]:
    """Return by column the mean files of plain equality queries, of the helper's, and the median seconds of both."""
    directory = HERE / SESSION_DIRECTORY / ("" if target == "dev" else target)
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}
    formats = [] if target == "dev" else [target]
    spark = open_session(format_settings(formats, settings, pyspark.__version__), str(directory))
    name = f"{TARGETS[target]}.flights"
    found: dict[str, dict[str, float]] = {}
    for column, literal in COLUMNS.items():
        values = spark.sql(
            f"select cast({column} as string) from {name} where {column} is not null "
            f"group by {column} order by xxhash64({column}) limit {VALUES}"
        ).collect()
        figures: dict[str, list[float]] = {"plain": [], "helper": [], "plain_seconds": [], "helper_seconds": []}
        for row in values:
            where = f"{column} = {literal.format(row[0])}"
            for kind in ("plain", "helper"):
                started = time.monotonic()
                df = (spark.table(name).where(where) if kind == "plain" else scan(spark, name, where)).selectExpr(
                    "count(*)"
                )
                df.collect()
                figures[f"{kind}_seconds"].append(time.monotonic() - started)
                figures[kind].append(scan_metrics(df).files)
        found[column] = {
            "plain": statistics.mean(figures["plain"]),
            "helper": statistics.mean(figures["helper"]),
            "plain_seconds": statistics.median(figures["plain_seconds"]),
            "helper_seconds": statistics.median(figures["helper_seconds"]),
        }
    return found


def main(console: Console) -> None:
    """Build the model in each format, each in a process of its own, and print the table."""
    table = Table(title=f"Files of 16 that Spark read for an equality query, mean of {VALUES} values each")
    for heading in ("format", "column", "plain select", "zorder_scan", "seconds, plain", "seconds, zorder_scan"):
        table.add_column(heading)
    dbt = Path(sys.executable).with_name("dbt")
    for target in TARGETS:
        run = [str(dbt), "run", "--profiles-dir", ".", "--target", target, "--select", "+flights.marts.flights"]
        subprocess.run(run, cwd=HERE, check=True)
        done = subprocess.run([sys.executable, __file__, target], check=True, capture_output=True, text=True)
        for column, figures in json.loads(done.stdout.splitlines()[-1]).items():
            table.add_row(
                "parquet" if target == "dev" else target,
                column,
                f"{figures['plain']:.2f}",
                f"{figures['helper']:.2f}",
                f"{figures['plain_seconds']:.2f}",
                f"{figures['helper_seconds']:.2f}",
            )
    console.print(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(read(sys.argv[1])))
    else:
        main(Console(width=140))
