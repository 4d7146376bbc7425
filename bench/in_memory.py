"""Small tables, laid out by Spark and in this process, beside ORDER BY: ``python -m bench.in_memory``.

From query to table in the catalog, as ``dbt run`` builds it the first time. Each build has its columns in another order
and draws another sample, so that none finds its code compiled by the one before. A table that is no smaller than what
may be held is laid out by Spark either way.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import MILLION, fresh, ordered
from bench.figures import keep_figures
from bench.kernel_time import RESULTS, sized
from bench.measure import SETTINGS, Meter
from dbt_zorder.adapter.session import open_session
from dbt_zorder.catalog import TableName
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.table.build import build
from dbt_zorder.table.remove import drop_table
from dbt_zorder.table.request import BuildRequest

CASES = (
    (0.001, 9, 2, 1),
    (0.02, 9, 2, 1),
    (0.1, 9, 2, 4),
    (0.3, 9, 2, 16),
    (0.3, 9, 4, 16),
    (1.0, 9, 2, 16),
    (1.0, 9, 2, 1),
    (2.0, 9, 2, 16),
    (3.0, 9, 2, 16),
    (0.01, 300, 4, 4),
    (0.03, 60, 4, 16),
    (0.25, 60, 2, 16),
)
"""Million rows, columns, keys and files."""

SCHEMA = "in_memory"
MOST = 1 << 30
"""Of memory: more than the default, to see from where on it is no gain."""


def main() -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session({"spark.driver.memory": "9g", **SETTINGS}, str(OUTPUT / "session_in_memory"))
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    meter = Meter(spark)
    builds, seeds = count(), count()
    made: list[TableName] = []

    def new_table() -> TableName:
        made.append(TableName(SCHEMA, f"in_memory_{len(made)}"))
        return made[-1]

    def order(df: DataFrame, keys: list[str], files: int) -> None:
        ordered(fresh(df, next(builds)), files, keys).write.saveAsTable(new_table().sql)

    def cluster(df: DataFrame, keys: list[str], files: int, in_memory: int) -> None:
        spec = LayoutSpec(by=keys, files=files, seed=next(seeds))
        build(spark, fresh(df, next(builds)), BuildRequest(new_table(), spec, in_memory=in_memory))

    headings = [f"{way}: {measure}" for measure in ("wall", "CPU", "memory") for way in ("Spark", "here")]
    table = Table("table", "keys", "files", *headings, title="/ ORDER BY")
    lines = []
    for millions, columns, number, files in CASES:
        rows = int(millions * MILLION * arguments.scale)
        df, keys = sized(spark, rows, columns, number)
        ways = {"spark": 0, "here": MOST}
        costs = meter.in_turn(
            {
                "order": partial(order, df, keys, files),
                **{way: partial(cluster, df, keys, files, most) for way, most in ways.items()},
            },
            arguments.repeats,
        )
        for name in made:
            if not drop_table(spark, name):
                spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
        made.clear()
        for way, cost in costs.items():
            lines.append(
                {
                    "rows": rows,
                    "columns": columns,
                    "keys": number,
                    "files": files,
                    "way": way,
                    "wall_seconds": round(cost.wall, 2),
                    "cpu_seconds": round(cost.cpu, 2),
                    "peak_bytes": cost.peak,
                }
            )
        base = costs["order"]
        ratios = [getattr(costs[way], name) / getattr(base, name) for name in ("wall", "cpu", "peak") for way in ways]
        told = [f"{rows:,} x {columns}", str(number), str(files), *(f"{ratio:.2f}" for ratio in ratios)]
        table.add_row(*told)
        Console().print(*told)
        keep_figures(lines, arguments.out / "in_memory.csv")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
