"""One process of the chain of test_kill.py: look at what the killed one before it left, build, vacuum, and be killed.

Usage: struck.py SESSION_DIR ROWS KIND [POINT]. ROWS are those of the build that was killed; the next has one more.
Prints a line of JSON for each thing it sees, so that the test learns what happened before the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from tests.faults.points import POINTS, Strike, armed
from tests.faults.victim import KINDS, Victim

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.master": "local[2]",
    **json.loads(os.environ.get("STRUCK_SETTINGS", "{}")),
}
"""Of the session: with those by which tests/servers puts it on a server's catalog or store."""


def die() -> None:
    emit("fired", True)
    os.killpg(os.getpgid(0), signal.SIGKILL)  # the JVM too


def emit(key: str, value: Any) -> None:
    print(json.dumps({key: value}), flush=True)  # noqa: T201


def main(directory: str, rows: int, kind: str, point: str) -> None:
    spark = open_session(SETTINGS, directory)
    victims = {kind: Victim(spark, TableName("default", kind), kind) for kind in KINDS}
    for name, victim in victims.items():
        emit(f"served {name}", [victim.served(), victim.others()])
        emit(f"expected {name}", [victim.expected(rows), victim.expected(rows - 1)])
    for name, victim in victims.items():
        victim.build(rows)
        emit(f"built {name}", [victim.served(), victim.vacuum()])
    if point:
        with armed(POINTS[point], Strike(die), spark, victims[kind].root):
            victims[kind].build(rows + 1)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
