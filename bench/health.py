"""Measure the seconds of a table's health, by the number of files: from stats, and from footers.

    python -m bench.health
    python -m bench.health --files 100000 --repeats 3

Files are copies of one small Parquet file. Generated stats give each of them a range that overlaps others.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from bench.measure import seconds
from bench.pruning_files import many_files
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.api import health


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--footers", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp())
    spark = open_session({"spark.sql.ansi.enabled": "false"}, str(root))
    try:
        many_files(spark, root / "warm", 1)
        health(spark, "many.t1", "a")
        for count in args.files:
            name = many_files(spark, root / str(count), count, width=50)
            for source in ("stats", *(["footers"] if args.footers else [])):
                if source == "footers":
                    shutil.rmtree(root / str(count) / "data" / "_zorder_stats")
                found = health(spark, name, "a")
                assert found.files == count
                took = [seconds(lambda n=name: health(spark, n, "a")) for _ in range(args.repeats)]  # type: ignore[misc]
                median = statistics.median(took)
                depth = found.columns["a"].depth
                print(f"{count:,} files from {source}: {median:.2f} s (of {args.repeats}), depth {depth:,.1f}")
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
