"""Measure merges into lineitem beside MERGE of Delta Lake and Iceberg: ``python -m bench.merges``.

Each batch has rows of the table. Half of them are unchanged, and the others get a new quantity. A tenth more rows are
new. Keys are random, or the most recent ones. ``--contender delta`` (``iceberg``) runs the statement of dbt-spark on
the same rows, in a process of its own: Delta without deletion vectors, Iceberg by copy-on-write. With
``--merge-on-read``, they write less and leave the work to readers. ``rebuild`` is the only way of Parquet without a
merge: the whole table by ``save_table``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console

from bench.contenders import live_files
from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import seconds
from bench.suites import Fact, Suite, Tables
from bench.tpch import generate
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.save import save_table

KEY = ("l_orderkey", "l_linenumber")
BY = ["l_orderkey", "l_shipdate"]
SUITE = Suite("merges", {"lineitem": Fact(BY)}, generate)
SHARES = (0.001, 0.01, 0.1)
CONTENDERS = ("zorder", "rebuild", "delta", "iceberg")

_NEW = 100_000_000
_UPDATED = "pmod(hash(l_orderkey, l_linenumber, 7), 2) = 0"
_INTO_DELTA = {"delta.enableDeletionVectors": ("false", "true")}
_INTO_ICEBERG = {
    "write.merge.mode": ("copy-on-write", "merge-on-read"),
    "write.update.mode": ("copy-on-write", "merge-on-read"),
}


def batch_of(table: DataFrame, share: float, keys: str, turn: int) -> DataFrame:
    """Return the rows of a batch: a share of the table's, half of them changed, and a tenth more that are new.

    New rows have keys from 100 million up, other ones in each batch.
    """
    table = table.where(f"l_orderkey < {_NEW}")
    if keys == "recent":
        least = table.selectExpr(f"percentile_approx(l_orderkey, {1 - share}, 100000)").collect()[0][0]
        chosen = table.where(f.col("l_orderkey") > least)
    else:
        chosen = table.where(f"pmod(xxhash64(l_orderkey, l_linenumber, {turn}), 1000000) < {share * 1_000_000:.0f}")
    changed = f.expr(f"if({_UPDATED}, CAST(l_quantity + {turn + 1} AS {_type(table, 'l_quantity')}), l_quantity)")
    more = table.where(f"pmod(xxhash64(l_orderkey, l_linenumber, {turn + 100}), 1000000) < {share * 100_000:.0f}")
    new = more.withColumn("l_orderkey", f.expr(f"l_orderkey + {(turn + 1) * _NEW}L"))
    return chosen.withColumn("l_quantity", changed).unionByName(new)


def _type(table: DataFrame, name: str) -> str:
    return table.schema[name].dataType.simpleString()


def merge_by_statement(spark: SparkSession, table: TableName, batch: DataFrame) -> None:
    """Run the statement of dbt-spark."""
    batch.createOrReplaceTempView("bench_batch")
    on = " AND ".join(f"DBT_INTERNAL_SOURCE.{key} = DBT_INTERNAL_DEST.{key}" for key in KEY)
    spark.sql(
        f"MERGE INTO {table.sql} AS DBT_INTERNAL_DEST USING bench_batch AS DBT_INTERNAL_SOURCE ON {on} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).collect()


def main(arguments: list[str] | None = None) -> None:
    """Measure from the command line, and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contender", choices=CONTENDERS, default="zorder")
    parser.add_argument("--merge-on-read", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    folder = given.data or SUITE.data(given.scale)
    generate(folder, given.scale)
    contender = "zorder" if given.contender == "rebuild" else given.contender
    tables = Tables(SUITE, contender, given.scale, given.files)
    spark = tables.open_session(place=f"_{given.contender}{'_mor' if given.merge_on_read else ''}")
    console = Console(width=140)
    console.print(f"files of {given.contender}:", tables.build(spark, folder))
    table = TableName(tables.schema, "lineitem")
    settings = {"delta": _INTO_DELTA, "iceberg": _INTO_ICEBERG}.get(contender, {})
    for name, (without, with_) in settings.items():
        spark.sql(
            f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('{name}' = '{with_ if given.merge_on_read else without}')"
        )
    lines: list[dict[str, object]] = []
    for keys in ("recent", "random"):
        for share in given.shares:
            for _ in range(given.turns):
                lines.append(_measure(spark, given.contender, table, keys, share, len(lines)))
                console.print(*(f"{name}={value}" for name, value in lines[-1].items()), highlight=False)
    suffix = f"{given.contender}{'_merge_on_read' if given.merge_on_read else ''}"
    keep_figures(lines, given.out / f"merges_{suffix}.csv")


def _measure(
    spark: SparkSession, contender: str, table: TableName, keys: str, share: float, turn: int
) -> dict[str, object]:
    rows = spark.table(table.sql)
    name = f"{table.schema}.batch_{keys}_{turn}"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    batch_of(rows, share, keys, turn).write.saveAsTable(name, format="parquet")
    batch = spark.table(name)
    file_format = contender if contender in ("delta", "iceberg") else "parquet"
    before = _sizes(spark, file_format, table)
    ways: dict[str, Callable[[], object]] = {
        "zorder": lambda: _merge_ours(spark, table, batch, len(before)),
        "rebuild": lambda: save_table(rows, f"{table.schema}.rebuilt", BY, "overwrite", files=len(before)),
    }
    took = seconds(ways.get(contender, lambda: merge_by_statement(spark, table, batch)))
    after = _sizes(spark, file_format, table)
    written = {path: size for path, size in after.items() if path not in before}
    line = {"contender": contender, "keys": keys, "share": share, "turn": turn, "seconds": round(took, 2)}
    line |= {"files_written": len(written), "bytes_written": sum(written.values())}
    return line | {"batch": batch.count(), "rows": spark.table(table.sql).count(), "sum": str(_total(spark, table))}


def _total(spark: SparkSession, table: TableName) -> object:
    return spark.table(table.sql).selectExpr("sum(l_quantity) + sum(l_linenumber)").collect()[0][0]


def _merge_ours(spark: SparkSession, table: TableName, batch: DataFrame, files: int) -> None:
    request = BuildRequest(table, LayoutSpec(by=BY, files=files), key_columns=KEY)
    report = merge_batch(spark, batch, request, Batch(may_rewrite=False), Merge(KEY), begin(spark, table))
    print(report.merged, report.appended and report.appended.seconds, report.built and report.built.seconds)


def _sizes(spark: SparkSession, file_format: str, table: TableName) -> dict[str, int]:
    """Return the bytes of each file by its inode, which a link shares, or by its path."""
    paths = live_files(spark, file_format, table) if file_format != "parquet" else []
    if file_format == "parquet":
        spark.catalog.refreshTable(table.sql)
        paths = [Path(one.removeprefix("file://").removeprefix("file:")) for one in spark.table(table.sql).inputFiles()]
    return {str(path.stat().st_ino): path.stat().st_size for path in paths}


if __name__ == "__main__":
    main()
