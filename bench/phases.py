"""Measure the seconds of each phase of a build on one machine: ``python -m bench.phases``.

``save_table`` lays a table out as a ``dbt run`` does, each time with the columns in another order. The steps are
functions of the package and of Arrow. A clock wraps each step. It counts seconds and the CPU seconds of the step's own
thread, without the steps inside it. Two threads shuffle and write rows, so the steps of a phase may sum to more seconds
than the phase. Work in Arrow's own threads counts for Python as a whole. ORDER BY and a plain copy are the references.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench.contenders import OUTPUT
from bench.datasets import fresh, ordered
from bench.figures import figures_beside, keep_figures
from bench.in_memory import SETS, Case, rows_of
from bench.kernel_time import RESULTS
from bench.measure import SETTINGS, Meter
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.engine.local.large_table import SpooledRows
from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.local.row_groups import RowGroups
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.engine.local.spool import spool as copies
from dbt_zorder.engine.local.spool.spool import Spool
from dbt_zorder.engine.parquet.column_options import Traits
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.save import save_table

SCHEMA = "phases"
STEPS: Sequence[tuple[Any, str, str]] = (
    (copies, "write_batches", "Spark copies the rows"),
    (copies, "write_row_files", "Spark copies the rows"),
    (Spool, "fetch_keys", "keys of all rows are read"),
    (Spool, "read", "chunks are read"),
    (Spool, "read_compact", "chunks are read"),
    (CellFinder, "cells", "rows are placed: cells"),
    (RowGroups, "split_by_file", "rows are placed: order of files"),
    (SpooledRows, "_share", "rows are moved to their files"),
    (ShuffleBuffer, "add", "rows are moved to their files"),
    (ShuffleBuffer, "take", "a file's rows are found"),
    (ShuffledRows, "order", "a file's rows are sorted"),
    (ShuffledRows, "unpack", "a file's rows are gathered"),
    (Traits, "of", "columns are looked at"),
    (pq.ParquetWriter, "write_table", "columns are encoded and compressed"),
    (pq.ParquetWriter, "close", "columns are encoded and compressed"),
)
"""Whose function, its name, and what it does."""
CASES = [*SETS["large"][2:], *SETS["fact"]]
NUMBERS = count()
"""Of tables: a name that was there once may leave its folder."""


@dataclass
class Steps:
    """Seconds, and CPU seconds of threads, by step."""

    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _inside: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def timed(self, step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same function, whose time is counted."""

        @wraps(work)
        def counted(*args: Any, **kwargs: Any) -> Any:
            open_ = self._inside.__dict__.setdefault("open", [])
            open_.append([0.0, 0.0])
            started = time.perf_counter(), time.thread_time()
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.perf_counter() - started[0], time.thread_time() - started[1]
                inner = open_.pop()
                if open_:
                    open_[-1] = [open_[-1][0] + spent[0], open_[-1][1] + spent[1]]
                with self._lock:
                    self.wall[step] += spent[0] - inner[0]
                    self.cpu[step] += spent[1] - inner[1]

        return counted


@contextlib.contextmanager
def timed_steps() -> Iterator[Steps]:
    """Count the time of all steps while the block runs."""
    steps = Steps()
    with contextlib.ExitStack() as until_then:
        for owner, name, step in STEPS:
            kept = vars(owner)[name]
            of_class = isinstance(kept, classmethod)
            work = steps.timed(step, kept.__func__ if of_class else kept)
            setattr(owner, name, classmethod(work) if of_class else work)
            until_then.callback(setattr, owner, name, kept)
        yield steps


def measure(spark: SparkSession, case: Case, repeats: int, scale: float) -> list[dict[str, Any]]:
    """Return the figures of a table, a line for each phase and step, and one for each whole way."""
    df, keys = rows_of(spark, case, scale)
    meter = Meter(spark)
    made: list[TableName] = []
    measured: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def new_table() -> TableName:
        made.append(TableName(SCHEMA, f"phases_{next(NUMBERS)}"))
        return made[-1]

    def rows() -> DataFrame:
        return fresh(df, len(made))

    def save() -> None:
        python = time.process_time()
        with timed_steps() as steps:
            found = save_table(rows(), str(new_table()), keys, files=case.files, seed=len(made))
        measured["save_table: Python"].append((0.0, time.process_time() - python))
        for phase, spent in found.seconds.items():
            measured[f"phase: {phase}"].append((spent, 0.0))
        for step, wall in steps.wall.items():
            measured[step].append((wall, steps.cpu[step]))

    runs: dict[str, Callable[[], object]] = {
        "plain copy": lambda: rows().write.saveAsTable(new_table().sql),
        "ORDER BY": lambda: ordered(rows(), case.files, keys).write.saveAsTable(new_table().sql),
        "save_table": save,
    }
    costs = meter.in_turn(runs, repeats)
    for name in made:
        drop_table(spark, name)
    base: dict[str, Any] = {"millions": f"{case.millions * scale:g}", "columns": str(case.columns)}
    base |= {"keys": str(case.keys), "files": str(case.files)}
    whole = {way: (cost.wall, cost.cpu) for way, cost in costs.items()}
    # the first run of each was to warm up
    kept = {name: tuple(map(statistics.median, zip(*found[1:], strict=True))) for name, found in measured.items()}
    return [
        base | {"what": name, "wall_seconds": f"{wall:.2f}", "cpu_seconds": f"{cpu:.2f}"}
        for name, (wall, cpu) in {**whole, **kept}.items()
    ]


def main() -> None:
    """Print the tables and keep them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))), help=f"of {CASES}")
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    spark = open_session({"spark.driver.memory": "9g", **SETTINGS}, str(OUTPUT / "session_phases"))
    spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    lines: list[dict[str, Any]] = []
    for number in arguments.cases:
        case = CASES[number]
        found = measure(spark, case, arguments.repeats, arguments.scale)
        names = list(found[0])
        table = Table(*names[4:], title=", ".join(f"{name} {found[0][name]}" for name in names[:4]))
        for line in found:
            table.add_row(*(line[name] for name in names[4:]))
        Console(width=120).print(table)
        lines += found
    names = ["millions", "columns", "keys", "files"]
    again = {tuple(line[name] for name in names): None for line in lines}
    keep_figures(
        [*figures_beside(arguments.out / "phases.csv", names, list(again)), *lines], arguments.out / "phases.csv"
    )


if __name__ == "__main__":
    main()
