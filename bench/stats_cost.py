"""What the stats of a version cost beside its write: ``python -m bench.stats_cost``."""

from __future__ import annotations

import argparse

from bench.datasets import DATA, MILLION, fact, kept, narrow
from dbt_zorder.adapter.session import open_session
from dbt_zorder.catalog import TableName
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.table.build import build
from dbt_zorder.table.request import BuildRequest


def main() -> None:
    """Build each table three times into 16 files, and print the last build's seconds by phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=float, default=3, help="in millions, of the narrow table; half of it for the fact table"
    )
    rows = int(parser.parse_args().rows * MILLION)
    spark = open_session({"spark.sql.ansi.enabled": "false"}, str(DATA / "session"))
    spark.sql("CREATE SCHEMA IF NOT EXISTS bench")
    cases = {
        "narrow": (kept(spark, f"narrow_{rows}", lambda: narrow(spark, rows)), ["customer_id", "event_ts"]),
        "fact": (kept(spark, f"fact_{rows // 2}", lambda: fact(spark, rows // 2)), ["c3", "c4"]),
    }
    for name, (df, keys) in cases.items():
        request = BuildRequest(TableName("bench", name), LayoutSpec(keys, files=16), keep_versions=0, grace_hours=0)
        for _ in range(3):
            report = build(spark, df, request)
        share = report.seconds["stats"] / report.seconds["write"]
        print(f"{name}: {dict(report.seconds)}, stats / write {share:.2f}")


if __name__ == "__main__":
    main()
