"""One process of the chain of test_kill_vacuum.py: look at what the killed one left, vacuum, and be killed at it.

Usage: struck_vacuum.py SESSION_DIR ROWS KIND [POINT]. ROWS are those of the table before; the next version has one
more. Prints a line of JSON for each thing it sees, as struck.py does.
"""

from __future__ import annotations

import sys

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from tests.faults.struck import SETTINGS, emit
from tests.faults.struck_batch import armed
from tests.faults.victim import Victim

POINTS = (
    "vacuum:delete_planned", "retention:raise_tombstone", "retention:delete_version", "retention:_delete",
    "files:_delete:0", "files:_delete:1", "files:_delete:2", "files:_delete:3",
)  # fmt: skip
"""Before the deletion of an old version, at its beginning, and before the first of what lies in it goes, or another."""


def main(directory: str, rows: int, kind: str, point: str) -> None:
    spark = open_session(SETTINGS, directory)
    victim = Victim(spark, TableName("default", f"vacuumed_{kind}"), kind)
    if victim.served() == (0, 0):
        victim.build(rows, grace_hours=24)
    emit("served", victim.served() == victim.expected(rows))
    emit("left", victim.vacuum())
    victim.build(rows + 1, grace_hours=24)
    emit("old", len(victim.others()))
    if point:
        with armed(point):
            victim.vacuum()
    emit("in the end", [victim.vacuum(), victim.served() == victim.expected(rows + 1)])
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
