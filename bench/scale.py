"""Compute the cost of a layout at 1,000 to 100,000 files: ``python -m bench.scale``.

The forest is really grown, over a sample as large as that of a build. Its plan is really written as SQL text. The
shuffle is computed. No Spark runs.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from rich.console import Console
from rich.table import Table

from dbt_zorder.curve.tree import descend, grow
from dbt_zorder.engine.spark.descent import comparisons
from dbt_zorder.engine.spark.hash_slots import slots
from dbt_zorder.engine.spark.lookup_tables import int_table
from dbt_zorder.layout.file_count import auto_size
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.page_order import order_levels
from dbt_zorder.layout.sample import Sample, wanted_rows
from dbt_zorder.spark.columns import ResolvedColumn

RESULTS = Path(__file__).parent / "results"
INPUT_SPLIT = 128 << 20  # spark.sql.files.maxPartitionBytes
ROW_BYTES = 50.0


def table_bytes(files: int) -> int:
    """Return the bytes of a table that ``auto`` cuts into so many files."""
    size = auto_size(0)
    while auto_size(files * size) != size:
        size = auto_size(files * size)
    return files * size


def main() -> None:
    """Print the table and keep it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[16, 1_000, 10_000, 100_000])
    parser.add_argument("--columns", type=int, nargs="*", default=[2, 4])
    arguments = parser.parse_args()
    headings = [
        "files",
        "columns",
        "table GB",
        "sample rows",
        "sample MB",
        "rows a file",
        "fullest / mean",
        "CPU s to grow",
    ]
    headings += ["levels in files", "MB of SQL", "shuffle blocks", "kB a block", "peak MB of Python"]
    table = Table(title="A layout at scale, on two to four BIGINT columns")
    for heading in headings:
        table.add_column(heading)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "scale.csv").open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(headings)
        for files, columns in itertools.product(arguments.files, arguments.columns):
            row = _figures(files, columns)
            writer.writerow(row)
            out.flush()
            table.add_row(*row)
            Console().print(*row)
    Console(width=200).print(table)


def _figures(files: int, columns: int) -> list[str]:
    keys = [key_of(ResolvedColumn((f"c{number}",), t.LongType())) for number in range(columns)]
    size = table_bytes(files)
    total = int(size / ROW_BYTES)
    levels = order_levels(total, files)
    rows = wanted_rows(files, keys, cells=files << levels)
    rng = np.random.default_rng(1)
    ranks = np.stack([rng.permutation(rows) + 1 for _ in range(columns)], axis=1).astype(np.int32)
    distinct = pa.array(np.sort(rng.integers(0, 1 << 60, rows)))
    started = time.process_time()
    trees = np.zeros(rows, np.int32)
    forest = grow(ranks, trees, [files], levels)
    seconds = time.process_time() - started
    sample = Sample(ranks, trees, [distinct] * columns)
    layout = Layout.of(forest, sample, keys, (), np.zeros(1, np.int64), total)
    text = sum(len(cuts) for level in range(len(layout.levels)) for _, cuts in comparisons(layout, level, ""))
    text += len(int_table(slots(files)[layout.first_file].tolist()))
    # another sample of the same size stands for the table: how even the files come out
    other = rng.integers(1, rows + 1, size=(min(10_000_000, 3_000 * files), columns)).astype(np.int32)
    cells = descend(forest, other, np.zeros(len(other), np.int32)) >> (len(forest.cuts) - forest.file_levels)
    counts = np.bincount(forest.first_file[cells], minlength=files)
    noise = 1 / np.sqrt(len(other) / files)
    fullest = counts.max() / counts.mean()
    blocks = -(-size // INPUT_SPLIT) * files
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        f"{files:,}",
        str(columns),
        f"{size / 2**30:,.0f}",
        f"{rows:,}",
        f"{rows * 16 * columns / 2**20:,.0f}",
        f"{rows / files:,.0f}",
        f"{fullest:.2f} (noise of the count {noise:.2f})",
        f"{seconds:.1f}",
        str(len(forest.cuts) - forest.file_levels),
        f"{text / 2**20:.1f}",
        f"{blocks:,}",
        f"{size / blocks / 1024:,.1f}",
        f"{peak:,.0f}",
    ]


if __name__ == "__main__":
    main()
