"""Compare two ways to place rows, beside ORDER BY: ``python -m bench.placing``.

The same tree is written as decisions (``engine/spark/decisions.py``) or as a descent (``engine/spark/descent.py``),
regardless of ``boundaries_allowed``. These figures are the basis of its rule (docs/decisions/010). Each build draws
another sample and has its columns in another order. Therefore no build reuses the compiled code of the build before.
This is the situation of a ``dbt run``, which builds each model once.
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.datasets import DATA, MILLION, fresh, ordered
from bench.figures import keep_figures
from bench.kernel_time import RESULTS, sized
from bench.measure import SETTINGS, Meter
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.curve.grid import BOUNDARIES
from dbt_zorder.engine.spark import spark_plan
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.layout.plan import make_plan
from dbt_zorder.layout.spec import LayoutSpec

OUTPUT = DATA / "placing"
CASES = (
    (3.0, 9, 2, 16),
    (3.0, 9, 2, 60),
    (3.0, 9, 2, 125),
    (3.0, 9, 2, 250),
    (1.67, 9, 2, 16),
    (1.67, 9, 8, 16),
    (0.25, 60, 2, 16),
    (0.25, 60, 8, 16),
    (0.1, 150, 2, 16),
    (0.1, 150, 8, 16),
    (0.05, 300, 4, 16),
    (1.0, 9, 2, 16),
    (1.0, 9, 2, 60),
    (0.3, 9, 2, 16),
    (0.3, 9, 2, 60),
    (0.1, 9, 2, 4),
    (0.02, 9, 2, 4),
    (0.03, 60, 4, 16),
    (0.02, 150, 2, 16),
    (0.01, 300, 4, 16),
)
"""Million rows, columns, keys and files: many rows, then some 15 million values, then fewer."""


def planned(df: DataFrame, spec: LayoutSpec, *, decide: bool) -> SparkLayout:
    """Plan a layout for the one way or the other."""
    with patch.object(spark_plan, "boundaries_allowed", lambda *_: BOUNDARIES[-1] if decide else -1):
        layout = SparkLayout.beside(spark_plan.for_spark(make_plan(df, spec)).layout)
    assert (layout.grid is not None) == decide, "this sample has no grid"
    return layout


def main() -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session(SETTINGS, str(DATA / "session"))
    meter = Meter(spark)
    seeds, builds = count(), count()
    decided: list[int] = []
    headings = (
        "table",
        "keys",
        "files",
        "decisions",
        "descent: CPU",
        "decisions: CPU",
        "descent: wall",
        "decisions: wall",
    )
    table = Table(*headings, title="Beside ORDER BY")
    lines = []

    def write(df: DataFrame) -> None:
        df.write.mode("overwrite").parquet(str(OUTPUT))

    def order(df: DataFrame, keys: list[str], files: int) -> None:
        write(ordered(fresh(df, next(builds)), files, keys))

    def cluster(df: DataFrame, keys: list[str], files: int, *, decide: bool) -> None:
        rows = fresh(df, next(builds))
        layout = planned(rows, LayoutSpec(by=keys, files=files, seed=next(seeds)), decide=decide)
        if layout.grid is not None:
            decided.append(files + sum(map(len, layout.grid.boundaries)))
        write(apply_layout(rows, layout))

    for millions, columns, number, files in CASES:
        rows = int(millions * MILLION * arguments.scale)
        df, keys = sized(spark, rows, columns, number)
        decided.clear()
        costs = meter.in_turn(
            {
                "order": partial(order, df, keys, files),
                "descent": partial(cluster, df, keys, files, decide=False),
                "decisions": partial(cluster, df, keys, files, decide=True),
            },
            arguments.repeats,
        )
        name = f"{rows:,} rows x {columns} columns"
        for way, cost in costs.items():
            lines.append(
                {
                    "rows": rows,
                    "columns": columns,
                    "keys": number,
                    "files": files,
                    "decisions": max(decided),
                    "way": way,
                    "wall_seconds": round(cost.wall, 2),
                    "cpu_seconds": round(cost.cpu, 2),
                }
            )
        base = costs["order"]
        ours = (costs["descent"], costs["decisions"])
        ratios = [*(cost.cpu / base.cpu for cost in ours), *(cost.wall / base.wall for cost in ours)]
        table.add_row(name, str(number), str(files), str(max(decided)), *(f"{ratio:.2f}" for ratio in ratios))
        Console().print(name, number, files, max(decided), *(f"{ratio:.2f}" for ratio in ratios))
        keep_figures(lines, arguments.out / "placing.csv")
    Console(width=120).print(table)
    shutil.rmtree(OUTPUT, ignore_errors=True)


if __name__ == "__main__":
    main()
