"""Measure file sizes for a ``zorder_file_size``, with even and uneven rows: ``python -m bench.sizes``.

``save_table`` builds each table twice, the second time over itself, like a ``dbt run`` on another day. A row is three
numbers and a text. The rows with more bytes than others either correlate with a key or do not.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import MILLION, kept
from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import SETTINGS
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.store import load_sizes
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.save import save_table

SCHEMA = "sizes"
KEYS = ["a", "b"]
RANDOM = "concat(sha2(string(id), 256), sha2(string(-id), 256), sha2(string(id + 1), 256))"
TEXTS = {
    "alike": "sha1(string(id))",
    "longer with id": f"left({RANDOM}, 2 + int(id / {{rows}} * 150))",
    "longer with a key": f"left({RANDOM}, 2 + int(a / 340))",
    "5% are 8 times as long": "IF(a > 47500, repeat(sha2(string(id), 256), 5), sha1(string(id)))",
    "NULL in 60%": "IF(a > 30000, sha2(string(id), 256), NULL)",
    "one value in 64%": "sha2(IF(a > 32000, string(id), 'x'), 256)",
}
QUERY = "SELECT id, a, b, {} AS t FROM (SELECT id, pmod(hash(id), 50000) AS a, pmod(hash(id, 1), 50000) AS b FROM {})"
WAYS = {"here": None, "spark": "never"}
COLUMNS = ["rows", "way", "build", "files", "least", "median", "most", "seconds"]


def main() -> None:
    """Print the table and keep it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of 2 million rows")
    parser.add_argument("--file-size", default="1MB")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session({"spark.driver.memory": "6g", **SETTINGS}, str(OUTPUT / "session_sizes"))
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    target = parse_size(arguments.file_size)
    assert target is not None
    rows, numbers = int(2 * MILLION * arguments.scale), count()
    table = Table(*COLUMNS, title=f"files of {arguments.file_size}: sizes / the size asked for")
    lines: list[dict[str, Any]] = []
    for way in arguments.ways:
        for kind, text in TEXTS.items():
            query = QUERY.format(text.format(rows=rows), f"range(0, {rows}, 1, 8)")
            name = f"{kind.replace(' ', '_').replace('%', '')}_{rows}"
            df = kept(spark, f"sizes_{name}", partial(spark.sql, query))
            to = TableName(SCHEMA, f"sizes_{next(numbers)}")
            for build in ("first", "again"):
                done = save_table(df, str(to), KEYS, "overwrite", file_size=arguments.file_size, in_memory=WAYS[way])
                info = describe(spark, to)
                assert info is not None
                found = load_sizes(spark, info.location)
                assert found is not None
                sizes = pc.divide(found["file_size"].cast("double"), float(target)).to_pylist()
                figures = [min(sizes), median(sizes), max(sizes), sum(done.seconds.values())]
                cells = [kind, way, build, len(sizes), *(round(figure, 2) for figure in figures)]
                table.add_row(*map(str, cells))
                Console(width=140).print(*cells)
                lines.append(dict(zip(COLUMNS, cells, strict=True)))
            drop_table(spark, to)
    Console(width=140).print(table)
    keep_figures(lines, arguments.out / "sizes.csv")


if __name__ == "__main__":
    main()
