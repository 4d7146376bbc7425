"""A whole model into Delta Lake or Iceberg beside CTAS and the format's command: ``python -m bench.formats delta``.

Both ways begin with the same query and end with 16 files of it; the format's own command is told the size of a file
that gives as many. Files are those that Spark's own metrics say it read for plain equality queries.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, kept, narrow
from bench.measure import Meter
from dbt_zorder.adapter.format_settings import format_settings
from dbt_zorder.adapter.session import open_session
from dbt_zorder.catalog import TableName
from dbt_zorder.formats.build import build_format
from dbt_zorder.formats.optimize import native_command
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.scan_metrics import scan_metrics
from dbt_zorder.stats.formats import FORMATS, format_stats
from dbt_zorder.table.request import BuildRequest

RESULTS = Path(__file__).parent / "results"
KEYS = ["customer_id", "event_ts"]
FILES = 16
VALUES = 40


def native(spark: SparkSession, request: BuildRequest, size: int) -> None:
    """Write the query as it comes, and let the format lay it out in files of a size."""
    table = request.table.sql
    spark.sql(f"CREATE OR REPLACE TABLE {table} USING {request.file_format} AS SELECT * FROM source").collect()
    command = native_command(request, KEYS)
    if request.file_format == "delta":
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
    else:
        command = command.replace("'rewrite-all', 'true'", f"'rewrite-all', 'true', 'target-file-size-bytes', '{size}'")
    spark.sql(command).collect()


def touched(spark: SparkSession, table: TableName, column: str) -> float:
    """Return the mean number of files that Spark reads for plain equality queries on a column."""
    values = spark.sql(
        f"SELECT DISTINCT {column} FROM {table.sql} ORDER BY xxhash64({column}) LIMIT {VALUES}"
    ).collect()
    found = []
    for (value,) in values:
        df = spark.table(table.sql).where(spark.table(table.sql)[column] == value).selectExpr("count(*)")
        df.collect()
        found.append(scan_metrics(df).files)
    return statistics.mean(found)


def main() -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("--scale", type=float, default=1.0, help="of 10 M rows")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    settings = format_settings([arguments.format], {"spark.sql.ansi.enabled": "false"}, pyspark.__version__)
    spark = open_session(settings, str(DATA / f"session_{arguments.format}"))
    spark.sql("CREATE SCHEMA IF NOT EXISTS bench")
    rows = int(10 * MILLION * arguments.scale)
    df = kept(spark, f"narrow_{rows}", lambda: narrow(spark, rows))
    df.createOrReplaceTempView("source")
    spec = LayoutSpec(by=KEYS, files=FILES)
    ours, theirs = (
        BuildRequest(TableName("bench", name), spec, file_format=arguments.format) for name in ("ours", "theirs")
    )
    build_format(spark, df, ours)
    stats = format_stats(spark, arguments.format, ours.table, [])
    size = int(stats.selectExpr("sum(file_size)").collect()[0][0]) // FILES
    costs = Meter(spark).in_turn(
        {
            "dbt-zorder": lambda: build_format(spark, df, ours),
            "CTAS and native command": lambda: native(spark, theirs, size),
        },
        arguments.repeats,
    )
    table = Table(title=f"{rows / MILLION:g} M rows into {arguments.format}, by {', '.join(KEYS)}")
    for heading in ("way", "seconds", "CPU seconds", "files", *(f"files read, {key}" for key in KEYS)):
        table.add_column(heading)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"formats_{arguments.format}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["way", "rows", "wall_seconds", "cpu_seconds", "files", *(f"files_read_{key}" for key in KEYS)])
        for (way, cost), request in zip(costs.items(), (ours, theirs), strict=True):
            reads = [touched(spark, request.table, key) for key in KEYS]
            count = len(format_stats(spark, arguments.format, request.table, []).collect())
            figures = [f"{cost.wall:.2f}", f"{cost.cpu:.2f}", str(count), *(f"{mean:.2f}" for mean in reads)]
            writer.writerow([way, rows, *figures])
            table.add_row(way, *figures)
    Console(width=140).print(table)
    one, other = costs.values()
    Console().print(
        f"dbt-zorder / {arguments.format}'s own: wall {one.wall / other.wall:.2f}, CPU {one.cpu / other.cpu:.2f}"
    )


if __name__ == "__main__":
    main()
