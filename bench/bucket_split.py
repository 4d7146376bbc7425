"""Measure how a table gets twice the buckets, by a split and by a rebuild: ``python -m bench.bucket_split``.

The table is lineitem with a hash index, z-ordered by the ship date and the part key. It is rebuilt by this process, and
by Spark with a shuffle, as on a cluster. After each way it is rolled back.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from bench.figures import keep_figures
from bench.hash_index import BY, KEYS
from bench.kernel_time import RESULTS
from bench.measure import Meter, in_order_of
from bench.suites import Fact, Suite, Tables
from bench.tpch import generate
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.rewrite import rewrite, split
from dbt_zorder.tables.report import BuildReport


def rewrite_by_spark(spark: SparkSession, request: BuildRequest) -> BuildReport:
    """Rebuild a table by a shuffle and a sort of Spark's."""
    return rewrite(spark, replace(request, in_memory=0))


WAYS: dict[str, Callable[[SparkSession, BuildRequest], BuildReport]] = {
    "split": split,
    "rebuild here": rewrite,
    "rebuild by Spark": rewrite_by_spark,
}


def main(arguments: list[str] | None = None) -> None:
    """Measure from the command line, and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    suite = Suite("bucket_split", {"lineitem": Fact(BY["lineitem"])}, generate)
    folder = given.data or suite.data(given.scale)
    generate(folder, given.scale)
    tables = Tables(suite, "zorder", given.scale, given.files)
    spark = tables.open_session()
    meter = Meter(spark)
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {tables.schema}")
    spark.sql(f"USE {tables.schema}")
    table = TableName(tables.schema, "lineitem")
    console = Console(width=140)
    lines: list[dict[str, object]] = []

    def request(buckets: int) -> BuildRequest:
        spec = LayoutSpec(by=BY["lineitem"], files=given.files)
        return BuildRequest(table, spec, hash_index=HashIndex([KEYS["lineitem"]], buckets), keep_versions=99)

    def note(what: str, done: Callable[[], BuildReport]) -> None:
        reports: list[BuildReport] = []
        cost, found = meter.measure(lambda: reports.append(done())), reports[0].summary
        figures = {"seconds": round(cost.wall, 2), "cpu": round(cost.cpu, 1), "files": found.files}
        reads = {f"read by {name}": mean for name, mean in found.point_query_files.items()}
        lines.append({"what": what, **figures, "kilobytes a file": found.bytes // found.files // 1024, **reads})
        console.print(*(f"{name}={value}" for name, value in lines[-1].items()), highlight=False)

    rows = spark.read.parquet(str(folder / "lineitem.parquet"))
    note(f"build, {given.buckets} buckets", lambda: build(spark, rows, request(given.buckets)))
    for turn in range(given.turns):
        for what in in_order_of(turn, WAYS):
            note(f"{what}, {2 * given.buckets} buckets", partial(WAYS[what], spark, request(2 * given.buckets)))
            rollback(spark, table)
    keep_figures(lines, given.out / f"bucket_split_{given.buckets}.csv")


if __name__ == "__main__":
    main()
