"""One of two processes on one metastore server: it appends batches to a table that the other one appends to, too.

Usage: racing.py SESSION_DIR NUMBER SCHEMA. Prints a line of JSON: the batches that went in, and how often it gave up.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from tests.faults.struck import SETTINGS, emit
from tests.unit.tables.parquet.batches import request, rows

BATCHES, ROWS, FIRST = 4, 50, 1000
_TRIES = 20


def ids(number: int, batch: int) -> tuple[int, int]:
    """Return the first id of a process's batch, and that after its last."""
    first = FIRST + (number * BATCHES + batch) * ROWS
    return first, first + ROWS


def add(spark: SparkSession, table: TableName, first: int, end: int) -> int:
    """Add a batch, again where the other process was faster; return how often it was."""
    for failed in range(_TRIES):
        begin(spark, table)
        spark.sql(f"REFRESH TABLE {table.sql}")
        if failed and spark.table(table.sql).where(f"id = {first}").count():
            return failed  # the other process has completed it
        try:
            increment(spark, spark.sql(rows(first, end)), request(table), Batch(may_rewrite=False))
        except BuildError as exc:
            print(exc, file=sys.stderr)  # noqa: T201
            time.sleep(0.1 * failed)
        else:
            return failed
    msg = f"the other process was faster {_TRIES} times"
    raise AssertionError(msg)


def main(directory: str, number: int, schema: str) -> None:
    spark = open_session(SETTINGS, directory)
    emit("ready", True)
    sys.stdin.readline()
    gave_up = sum(add(spark, TableName(schema, "shared"), *ids(number, batch)) for batch in range(BATCHES))
    own = TableName(schema, f"own_{number}")
    for files in (2, 3):
        build(spark, spark.sql(rows(0, 100 * files)), request(own, files=files, keep_versions=0, grace_hours=0))
    emit("gave up", gave_up)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
