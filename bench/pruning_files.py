"""Measure the planning time of a point query on many files, and the filter's cost for each row kept.

    python -m bench.pruning_files
    python -m bench.pruning_files --files --rows 20000000

Files are copies of one small Parquet file under the names that Spark would give them, with matching statistics. Slopes
are of logarithms: 1 is proportional growth.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType

from bench.figures import keep_figures
from bench.growth import RESULTS, slope
from bench.measure import seconds
from bench.plots import keep_plot
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.pruning import scan
from dbt_zorder.pruning.files import exclusion
from dbt_zorder.pruning.plan import make_plan
from dbt_zorder.stats import cache
from dbt_zorder.stats.arrow_store import ENDING, footer_entries
from dbt_zorder.stats.schema import stats_schema

CACHED = cache.FILE_BYTES
CACHED_FILES = 20_000
"""Stats of more files are larger than that."""


def many_files(spark: SparkSession, root: Path, count: int, width: int = 0) -> str:
    """Make a table of ``count`` files of one row each, file n with the values n to n + ``width`` by its statistics."""
    data = root / "data"
    stats = data / "_zorder_stats"
    stats.mkdir(parents=True)
    writer = str(uuid.uuid4())
    first = data / f"part-00000-{writer}-c000.snappy.parquet"
    pq.write_table(pa.table({"a": pa.array([0], pa.int64()), "s": ["x"]}), first)
    size = first.stat().st_size
    for number in range(1, count):
        shutil.copyfile(first, data / f"part-{number:05d}-{writer}-c000.snappy.parquet")
    bounds = pa.array(range(count), pa.int64())
    column = pa.StructArray.from_arrays(
        [bounds, pc.add(bounds, width), pa.array([0] * count, pa.int64())], ["min_value", "max_value", "null_count"]
    )
    table = pa.table(
        {
            "file_path": [f"file:{data}/part-{n:05d}-{writer}-c000.snappy.parquet" for n in range(count)],
            "file_size": pa.array([size] * count, pa.int64()),
            "row_count": pa.array([1] * count, pa.int64()),
            "version": ["v1"] * count,
            "columns": pa.StructArray.from_arrays([column], ["a"]),
        }
    )
    entries = footer_entries(spark, stats_schema({"a": LongType()}))
    pq.write_table(table.replace_schema_metadata(entries), stats / f"part-00000{ENDING}")
    spark.sql("CREATE DATABASE IF NOT EXISTS many")
    spark.sql(f"CREATE TABLE many.t{count} (a BIGINT, s STRING) USING parquet LOCATION '{data}'")
    return f"many.t{count}"


def plan_times(spark: SparkSession, count: int, list_up_to: int | None) -> dict[str, float]:
    """Return the seconds of each part of a point query."""
    if list_up_to is not None:
        exclusion.LIST_UP_TO = list_up_to
        exclusion.LIST_AT_MOST = max(list_up_to, 20_000)
    name = f"many.t{count}"
    found: dict[str, list[float]] = {"decide": [], "plan": [], "all": []}
    size = 0
    for value in (1, 7, 11, 13, 14, 15):
        predicate = f"a = {value}"
        start = time.perf_counter()
        plan = make_plan(spark, name, predicate)
        decided = time.perf_counter()
        size = len(plan.exclusion or "")
        # Planned and listed, not run: the copies all hold the value 0.
        plan.rows._jdf.queryExecution().executedPlan().toString()
        end = time.perf_counter()
        found["decide"].append(decided - start)
        found["plan"].append(end - decided)
        found["all"].append(seconds(lambda p=predicate: scan(spark, name, p).collect()))  # type: ignore[misc]
    print(f"  {count:,} files, SQL of the filter {size / 1000:,.0f} kB, first scan {found['all'][0]:.2f} s")
    return {part: statistics.median(times[1:]) for part, times in found.items()}


def growth(lines: list[dict[str, Any]], path: Path) -> None:
    """Keep the figures, print their slopes from 1,000 files on, and draw them."""
    keep_figures(lines, path)
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.subplots()
    for form in dict.fromkeys(line["form"] for line in lines):
        points = [(line["files"], line["all"]) for line in lines if line["form"] == form]
        axes.loglog(*zip(*points, strict=True), marker="o", label=form)
        many = [point for point in points if point[0] >= 1_000]
        if len(many) > 1:
            xs, ys = zip(*many, strict=True)
            print(f"{form}: slope {slope(list(xs), list(ys)):.2f} from {min(xs):,.0f} to {max(xs):,.0f} files")
    axes.set_xlabel("files")
    axes.set_ylabel("seconds of a point query")
    axes.legend()
    keep_plot(figure, path)


def row_cost(spark: SparkSession, rows: int, root: Path) -> None:
    """Print what the filter costs for every row that is kept, for several numbers of excluded files."""
    path = str(root / "rows")
    spark.range(0, rows, 1, 4).selectExpr("id a", "id * 1.5D b").write.parquet(path)
    frame = spark.read.parquet(path)
    one = frame.selectExpr("_metadata.file_path p", "_metadata.file_size z").limit(1).collect()[0]
    plain = min(seconds(lambda: frame.selectExpr("sum(a)", "sum(b)").collect()) for _ in range(4))
    print(f"{rows:,} rows, no filter: {plain:.2f} s")
    listed = [(count, False, False) for count in (1, 100, 1_000)]
    print("  files of a size that no file has which is read:")
    for count in (1, 100, 1_000):
        exclusion.LIST_UP_TO = 10**9
        sql = exclusion.exclude([(f"{one.p}{n}", one.z + 1 + n) for n in range(count)]).sql
        took = min(seconds(lambda s=sql: frame.where(s).selectExpr("sum(a)", "sum(b)").collect()) for _ in range(4))  # type: ignore[misc]
        print(f"  {count:>7,} files listed: {took:.2f} s, {(took - plain) / rows * 1e9 * 2:.0f} core-ns a row")
    print("  files of the same size as those that are read:")
    packs = [(count, True, kept) for count in (1_000, 10_000, 100_000) for kept in (False, True)]
    for count, packed, kept in [*listed, *packs]:
        exclusion.LIST_UP_TO = 0 if packed else 10**9
        # Files of the same names but for their sizes (or, listed, the other way round), so that every test is evaluated
        # to its end.
        head, rest = one.p.split("part-")
        files = [(f"{head}part-{n:05d}{rest[5:]}", one.z + 1) for n in range(count)]
        if not packed:
            files = [(f"{path}x", one.z) for path, _ in files]
        sql = exclusion.exclude(files, [one.p] if kept else []).sql
        took = min(seconds(lambda s=sql: frame.where(s).selectExpr("sum(a)", "sum(b)").collect()) for _ in range(4))  # type: ignore[misc]
        form = ("packed, kept named" if kept else "packed") if packed else "listed"
        print(f"  {count:>7,} files {form}: {took:.2f} s, {(took - plain) / rows * 1e9 * 2:.0f} core-ns a row")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=[16, 125, 1_000, 10_000, 100_000])
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    lines: list[dict[str, Any]] = []
    root = Path(tempfile.mkdtemp())
    spark = open_session({"spark.sql.ansi.enabled": "false"}, str(root))
    try:
        if args.files:
            many_files(spark, root / "warm", 1)
            plan_times(spark, 1, 1_000)
        for count in args.files:
            made = seconds(lambda n=count: many_files(spark, root / str(n), n))  # type: ignore[misc]
            listing = seconds(lambda n=count: spark.table(f"many.t{n}").inputFiles())  # type: ignore[misc]
            print(f"{count:,} files (made in {made:.0f} s); Spark lists them in {listing:.2f} s")
            lines.append({"files": count, "form": "Spark lists the files", "all": round(listing, 3)})
            forms = {
                "stats cached in memory": (1_000, CACHED),
                "stats by a job": (1_000, 0),
                "stats by a job, files listed": (10**9, 0),
            }
            for form, (up_to, cache.FILE_BYTES) in forms.items():
                if cache.FILE_BYTES and count > CACHED_FILES:
                    continue  # so many are never cached
                parts = plan_times(spark, count, up_to)
                print(f"  {form}: " + ", ".join(f"{part} {value:.2f} s" for part, value in parts.items()))
                lines.append({"files": count, "form": form, **{part: round(value, 3) for part, value in parts.items()}})
        if lines:
            growth(lines, args.out / "pruning_files.csv")
        if args.rows:
            row_cost(spark, args.rows, root)
        print(f"peak memory of Python: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
