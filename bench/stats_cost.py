"""Compare the cost of a version's stats with its write: ``python -m bench.stats_cost``.

The stats are collected by footers and by reading rows.
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial

from pyspark.sql import DataFrame

from bench.datasets import DATA, MILLION, fact, kept, narrow
from bench.measure import SETTINGS, Meter
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats.collect import row_stats
from dbt_zorder.stats.footers import footer_stats
from dbt_zorder.stats.store import write_stats

OUTPUT = DATA / "stats_cost"


def write(df: DataFrame, keys: list[str], path: str) -> None:
    """Write the clustered rows."""
    cluster(df, keys, files=16).write.mode("overwrite").parquet(path)


def by_footers(df: DataFrame, keys: list[str], path: str) -> None:
    """Write the stats from the footers."""
    stats = footer_stats(df.sparkSession, path, resolve_all(keys, df.schema), "v1")
    assert stats is not None
    write_stats(stats, path)


def by_rows(df: DataFrame, keys: list[str], path: str) -> None:
    """Write the stats from the rows."""
    read = df.sparkSession.read.schema(df.schema).parquet(path)
    write_stats(row_stats(read, resolve_all(keys, df.schema), "v1"), path)


def main() -> None:
    """Write each table into 16 files and collect its stats both ways, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=float, default=3, help="in millions, of the narrow table; half of it for the fact table"
    )
    rows = int(parser.parse_args().rows * MILLION)
    spark = open_session(SETTINGS, str(DATA / "session"))
    meter = Meter(spark)
    nine = kept(spark, f"narrow_{rows}", lambda: narrow(spark, rows))
    cases = {
        "narrow": (nine, ["customer_id", "event_ts"]),
        "narrow, a text": (nine, ["customer_id", "sku"]),
        "fact": (kept(spark, f"fact_{rows // 2}", lambda: fact(spark, rows // 2)), ["c3", "c4"]),
    }
    for name, (df, keys) in cases.items():
        steps = {"write": write, "footers": by_footers, "rows": by_rows}
        costs = meter.in_turn({step: partial(run, df, keys, str(OUTPUT)) for step, run in steps.items()}, 3)
        for step in ("footers", "rows"):
            wall, cpu = costs[step].wall / costs["write"].wall, costs[step].cpu / costs["write"].cpu
            print(f"{name}, stats by {step}: {wall:.3f} of the write's seconds, {cpu:.3f} of its CPU seconds")
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
