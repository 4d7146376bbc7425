"""One process of the chain of test_kill_batch.py: recover what the killed one left, repeat its batch, and be killed.

Usage: struck_batch.py SESSION_DIR DONE KIND [POINT]. DONE batches are to be in each table in the end; the next is one
more. Prints a line of JSON for each thing it sees, as struck.py does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.files import list_folders
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.verify import verify_table
from tests.faults.struck import SETTINGS, emit
from tests.support import checksum

KINDS = ("append", "overwrite")
BEFORE_READY = (
    "append:plan_batch",
    "append:write_data",
    "append:collect_path",
    "append:verify",
    "append:check_same_files",
)
READY = ("journal:carry_out", "journal:move:0", "journal:move:1", "journal:move:2", "journal:move:3")
LAST = ("journal:close_entry", "append:measure_again")
POINTS = {point: point not in BEFORE_READY for point in (*BEFORE_READY, *READY, *LAST)}
"""Points, and whether the batch must be in the table when the next process has recovered the journal."""


def batch(kind: str, number: int) -> str:
    """Rows of one batch; those of ``overwrite`` replace partition 0 and bring one of their own."""
    part = "0" if kind == "append" else f"if(id % 2 = 0, 0, {number})"
    columns = f"id + {1000 * number} AS id, pmod(hash(id, {number}), 50) AS a, CAST({part} AS INT) AS p"
    return f"SELECT {columns} FROM range(60)"


def expected(kind: str, batches: int) -> str:
    """Rows of a table that holds the first build and so many batches."""
    parts = [batch(kind, number) for number in range(batches + 1)]
    if kind == "overwrite":
        parts = [f"SELECT * FROM ({part}) WHERE p > 0" for part in parts[:-1]] + parts[-1:]
    return " UNION ALL ".join(parts)


def die() -> None:
    emit("fired", True)
    os.killpg(os.getpgid(0), signal.SIGKILL)  # the JVM too


MODULES = {
    "append": "tables.parquet.append",
    "files": "spark.files",
    "journal": "tables.parquet.journal",
    "retention": "tables.parquet.retention.deletions",
    "vacuum": "tables.parquet.operations.vacuum",
}
"""Where the functions are that points name."""


def armed(point: str) -> Any:
    """Return what kills at the call of a function of a module, the nth of its calls if a number is given."""
    module, step, *call = point.split(":")
    owner = import_module(f"dbt_zorder.{MODULES[module]}")
    real: Callable[..., Any] = getattr(owner, step)
    calls = iter(range(1000))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == int(call[0] if call else 0):
            die()
        return real(*args, **kwargs)

    return patch.object(owner, step, wrapped)


def leftovers(spark: SparkSession, location: str) -> list[str]:
    """Return what lies in a version's journal."""
    return list_folders(spark, f"{location}/{journal.JOURNAL_DIRECTORY}")


def look(spark: SparkSession, kind: str, done: int) -> None:
    """Recover a table as a run does first, print what it has, and add the last batch if it is not there."""
    table = TableName("default", f"batches_{kind}")
    spec = LayoutSpec(by=["id", "a"], files=2, partition_by=["p"] if kind == "overwrite" else [])
    request = BuildRequest(table, spec)
    if describe(spark, table) is None:
        build(spark, spark.sql(batch(kind, 0)), request)
    begin(spark, table)
    found = checksum(spark.table(table.sql))
    new, old = (checksum(spark.sql(expected(kind, count))) for count in (done, max(0, done - 1)))
    emit(f"rows of {kind}", "new" if found == new else "old" if found == old else "torn")
    if found != new:
        run(spark, request, kind, done)
    info = describe(spark, table)
    assert info is not None
    whole = checksum(spark.table(table.sql)) == new
    emit(f"in the end {kind}", [whole, leftovers(spark, info.location), list(verify_table(spark, table).findings)])


def run(spark: SparkSession, request: BuildRequest, kind: str, number: int) -> None:
    increment(spark, spark.sql(batch(kind, number)), request, Batch(overwrite=kind == "overwrite", may_rewrite=False))


def main(directory: str, done: int, kind: str, point: str) -> None:
    spark = open_session(SETTINGS, directory)
    for one in KINDS:
        look(spark, one, done)
    if point:
        table = TableName("default", f"batches_{kind}")
        spec = LayoutSpec(by=["id", "a"], files=2, partition_by=["p"] if kind == "overwrite" else [])
        with armed(point):
            run(spark, BuildRequest(table, spec), kind, done + 1)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
