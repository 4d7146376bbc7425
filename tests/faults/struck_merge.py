"""One process of the chain of test_kill_merge.py: see what the killed one left, repeat its merge, and be killed.

Usage: struck_merge.py SESSION_DIR DONE KIND [POINT]. DONE merges are to be in each table in the end; the next is one
more. Prints a line of JSON for each thing it sees, as struck.py does.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from tests.faults.points import POINTS, Strike, armed
from tests.faults.struck import SETTINGS, die, emit
from tests.support import checksum
from tests.unit.tables.parquet.batches import folder

KINDS = ("plain", "indexed")


def request(kind: str) -> BuildRequest:
    """Return the request of a table of eight files; versions are deleted at once, so that leftovers show."""
    index = HashIndex(["id"], 4) if kind == "indexed" else None
    table, spec = TableName("default", f"merged_{kind}"), LayoutSpec(by=["id"], files=8)
    return BuildRequest(table, spec, key_columns=["id"], keep_versions=0, grace_hours=0, hash_index=index)


def expected(spark: SparkSession, merges: int) -> tuple[int, int]:
    """Return the checksum of a table after so many merges."""
    changed = f"if(id < 10, {merges}L, 0L)"
    return checksum(spark.sql(f"SELECT id, {changed} AS n FROM range({2000 + merges})"))


def merge(spark: SparkSession, kind: str, number: int) -> None:
    """Set ``n`` of ten rows, and add a row."""
    query = f"SELECT id, {number}L AS n FROM range(10) UNION ALL SELECT {1999 + number}L, 0L"
    before = begin(spark, request(kind).table)
    merge_batch(spark, spark.sql(query), request(kind), Batch(may_rewrite=False), Merge(["id"]), before)


def look(spark: SparkSession, kind: str, done: int) -> None:
    """Print what a table has, and run the last merge once more, as dbt does after a failed run."""
    table = request(kind).table
    if describe(spark, table) is None:
        build(spark, spark.sql("SELECT id, 0L AS n FROM range(2000)"), request(kind))
    begin(spark, table)
    found, new, old = (checksum(spark.table(table.sql)), expected(spark, done), expected(spark, max(0, done - 1)))
    emit(f"rows of {kind}", "new" if found == new else "old" if found == old else "torn")
    if done:
        merge(spark, kind, done)
    spark.catalog.refreshTable(table.sql)
    whole = checksum(spark.table(table.sql)) == new
    vacuum(spark, table, keep=0, grace_hours=0, dry_run=False)
    others = len([path for path in folder(spark, table).parent.iterdir() if path.name.startswith("v")]) - 1
    emit(f"in the end {kind}", [whole, others, list(verify_table(spark, table).findings)])


def main(directory: str, done: int, kind: str, point: str) -> None:
    spark = open_session(SETTINGS, directory)
    for one in KINDS:
        look(spark, one, done)
    if point:
        root = folder(spark, request(kind).table).parent
        with armed(POINTS[point], Strike(die), spark, root):
            merge(spark, kind, done + 1)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
