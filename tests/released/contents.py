"""What the tables of a release hold, by queries that any release of Spark answers alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCHEMA = "released"
"""The schema that the tables were built in: versions say so of themselves."""

PLACEHOLDER = "/released-warehouse"
"""What stands in place of the warehouse's own path in stats, markers and tombstones as they are stored."""

WAREHOUSE = Path(__file__).with_name("warehouse_0_1_0")
"""What the release 0.1.0 wrote."""

STATS_ENDING = ".stats"

ALL_TYPES = (
    "id, timestamp_seconds(1700000000 + 3600 * id) AS ts, date_add(DATE'2024-01-01', cast(id % 30 AS int)) AS d, "
    "cast(id % 17 AS decimal(10, 2)) AS amount, if(id % 9 = 0, NULL, concat('name ', id % 9)) AS name, "
    "cast(id AS double) / 4 AS ratio, id % 2 = 0 AS flag, named_struct('a', cast(id % 5 AS int), 'b', 'x') AS info"
)
TWO_KEYS = "id, cast(pmod(hash(id), 50) AS int) AS a"
PARTS = f"{TWO_KEYS}, if(id % 3 = 0, NULL, concat('part=', id % 3, ' %ü')) AS p"
SNAPSHOT = "cast(id AS bigint) AS id, v, scd, cast(until AS date) AS until"


def rows(columns: str, first: int, end: int) -> str:
    """Return a query of numbered rows."""
    return f"SELECT {columns} FROM range({first}, {end})"


@dataclass(frozen=True)
class Content:
    """What a table holds once all that was left half-done is completed.

    Attributes:
        rows: query of all rows.
        predicate: one that leaves some files out.
        by: clustering columns.
        partition_by: partition columns.
        batch: query of rows that a batch adds.
        before: query of what a rollback serves again; empty where there is nothing to roll back to.
    """

    rows: str
    predicate: str
    by: tuple[str, ...]
    batch: str
    partition_by: tuple[str, ...] = ()
    before: str = ""


CONTENTS = {
    "plain": Content(
        rows(ALL_TYPES, 0, 60), "id < 5", ("id", "ts"), rows(ALL_TYPES, 60, 70), before=rows(ALL_TYPES, 0, 40)
    ),
    "parted": Content(rows(PARTS, 0, 60), "id < 5", ("id", "a"), rows(PARTS, 60, 70), ("p",), rows(PARTS, 0, 30)),
    "batches": Content(rows(TWO_KEYS, 0, 90), "id < 5", ("id", "a"), rows(TWO_KEYS, 90, 99)),
    "overwritten": Content(
        f"{rows(PARTS, 100, 130)} UNION ALL SELECT * FROM ({rows(PARTS, 0, 60)}) WHERE p = 'part=1 %ü'",
        "id < 10",
        ("id", "a"),
        rows(PARTS, 200, 210),
        ("p",),
    ),
    "ready": Content(rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60)),
    "halfway": Content(
        f"SELECT * FROM ({rows(PARTS, 100, 130)}) WHERE p IS NOT NULL "
        f"UNION ALL SELECT * FROM ({rows(PARTS, 0, 60)}) WHERE p IS NULL",
        "id < 20",
        ("id", "a"),
        rows(PARTS, 200, 210),
        ("p",),
    ),
    "snapshot": Content(
        f"SELECT {SNAPSHOT} FROM VALUES (1, 'a', '1a', '2024-05-01'), (1, 'A', '1A', NULL), (2, 'b', '2b', NULL), "
        "(3, 'c', '3c', NULL) AS rows(id, v, scd, until)",
        "id = 3",
        ("id",),
        f"SELECT {SNAPSHOT} FROM VALUES (4, 'd', '4d', NULL) AS rows(id, v, scd, until)",
        before=f"SELECT {SNAPSHOT} FROM VALUES (1, 'a', '1a', NULL), (2, 'b', '2b', NULL) AS rows(id, v, scd, until)",
    ),
    "moved": Content(
        rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60), before=rows(TWO_KEYS, 0, 30)
    ),
    "hilbert": Content(rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60)),
    "bits": Content(rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60)),
    "by_spark": Content(rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60)),
    "aside": Content(rows(TWO_KEYS, 0, 50), "id < 5", ("id", "a"), rows(TWO_KEYS, 50, 60)),
}
