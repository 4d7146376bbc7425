"""Measure many appends to one table: ``python -m bench.appends``.

After each append, real files give two figures. Write amplification is the bytes of all data files ever written over the
bytes of the table. The other figure is the files that a point query reads by the stats. It is a ratio to a second
table, built anew from the same rows. Batches arrive in two ways. With ``uniform``, every batch covers both keys; with
``by time``, every batch is later than all before it. Each way is also measured without rewriting (``never``).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA
from bench.figures import columns_of, keep_figures
from bench.plots import keep_plot
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import increment
from dbt_zorder.tables.parquet.operations.drop import drop_table

RESULTS = Path(__file__).parent / "results"
WAYS = {"uniform": True, "by time": True, "uniform, never": False, "by time, never": False}


def batch_of(spark: SparkSession, way: str, number: int, rows: int) -> DataFrame:
    """Return the rows of one batch; its keys depend on its number alone."""
    first = number * rows
    at = "id * 1000" if way.startswith("by time") else f"pmod(xxhash64(id, 2), {10**11})"
    return spark.range(first, first + rows).selectExpr(
        "id",
        "pmod(xxhash64(id, 1), 1000000) AS customer_id",
        f"timestamp_micros(1600000000000000 + {at}) AS event_ts",
        "cast(pmod(xxhash64(id, 3), 100000) / 100.0 as decimal(9, 2)) AS price",
    )


def run(spark: SparkSession, way: str, appends: int, rows: int, file_size: int, every: int) -> list[dict[str, Any]]:
    """Append batch after batch; every so often the same rows are built anew beside it and compared."""
    spec = LayoutSpec(by=["customer_id", "event_ts"], file_size=file_size)
    request = BuildRequest(TableName("default", "appends"), spec, keep_versions=0, grace_hours=0)
    beside = replace(request, table=TableName("default", "appends_anew"))
    drop_table(spark, request.table)
    written = build(spark, batch_of(spark, way, 0, rows), request).summary.bytes
    lines: list[dict[str, Any]] = []
    for number in range(1, appends + 1):
        report = increment(spark, batch_of(spark, way, number, rows), request, Batch(may_rewrite=WAYS[way]))
        assert report.appended is not None
        assert report.table is not None
        written += report.appended.bytes + (report.built.summary.bytes if report.built else 0)
        line: dict[str, Any] = {
            "way": way,
            "append": number,
            "files": report.table.files,
            "rewritten": int(report.built is not None),
            "write_amplification": round(written / report.table.bytes, 3),
        }
        if number % every == 0 or number == appends:
            anew = build(spark, spark.table(request.table.sql), beside).summary
            line["files_anew"] = anew.files
            for column, touched in report.table.point_query_files.items():
                line[f"{column}_touched"] = touched
                line[f"{column}_ratio"] = round(touched / anew.point_query_files[column], 3)
        lines.append(line)
    drop_table(spark, request.table)
    drop_table(spark, beside.table)
    return lines


def plot(lines: list[dict[str, Any]], path: Path) -> None:
    """Draw both figures over the appends, as PNG and SVG."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    written, touched = figure.subplots(1, 2)
    for way in dict.fromkeys(line["way"] for line in lines):
        own = [line for line in lines if line["way"] == way]
        written.plot([line["append"] for line in own], [line["write_amplification"] for line in own], label=way)
        compared = [line for line in own if "files_anew" in line]
        worst = [max(value for name, value in line.items() if name.endswith("_ratio")) for line in compared]
        touched.plot([line["append"] for line in compared], worst, marker=".", label=way)
    written.set_ylabel("bytes written / bytes of the table")
    touched.set_ylabel("files of a point query / after a rewrite")
    touched.set_yscale("log")
    for axes, bound in ((written, 3.0), (touched, 1.5)):
        axes.axhline(bound, color="grey", linestyle=":")
        axes.set_xlabel("appends")
        axes.legend()
    keep_plot(figure, path)


def main() -> None:
    """Keep all figures as CSV way by way, as each takes minutes, draw them, and print a table of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000, help="of a batch")
    parser.add_argument("--file-size", type=int, default=200_000, help="target bytes of a file")
    parser.add_argument("--every", type=int, default=10, help="appends between two comparisons")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    arguments = parser.parse_args()
    spark = open_session(
        {"spark.sql.shuffle.partitions": "4", "spark.sql.ansi.enabled": "false"}, str(DATA / "appends")
    )
    lines: list[dict[str, Any]] = []
    for way in arguments.ways:
        lines += run(spark, way, arguments.appends, arguments.rows, arguments.file_size, arguments.every)
        keep_figures(lines, RESULTS / "appends.csv")
        plot(lines, RESULTS / "appends.csv")
    columns = columns_of(lines)
    table = Table(*columns)
    for line in lines:
        if "files_anew" in line:
            table.add_row(*(str(line.get(column, "")) for column in columns))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
