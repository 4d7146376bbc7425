"""Random merges, and what they make of a table by plain Python: row by row, with SQL's rules for NULL, NaN and -0.0."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from dbt_zorder.tables.merge import Merge

Row = tuple[Any, ...]

COLUMNS = ["k", "k2", "a", "s", "x", "p"]

KEYS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda n: n - 5,
    "INT": lambda n: n * 1_000_003 % 97,
    "STRING": lambda n: ["", "a", "A", " a", "a ", "é", "𝄞", "null", "0", "00"][n % 10] + str(n // 10),
    "BINARY": lambda n: bytes([n % 256, 0]),
    "DATE": lambda n: date(1999, 12, 25) + timedelta(n),
    "TIMESTAMP": lambda n: datetime(2020, 3, 29, 0, 0) + timedelta(minutes=17 * n, microseconds=n),
    "DECIMAL(20,2)": lambda n: Decimal(n * 7 - 40) / 4,
    "DOUBLE": lambda n: [math.nan, -0.0, 0.0, math.inf, 1.5][n % 5] if n < 5 else n / 3,
    "BOOLEAN": lambda n: n % 2 == 0,
}

PREDICATES: dict[str, Callable[[Row, Row | None], bool | None]] = {
    "DBT_INTERNAL_DEST.a > 3": lambda old, _: None if old[2] is None else old[2] > 3,
    "DBT_INTERNAL_DEST.s IS NOT NULL -- the end": lambda old, _: old[3] is not None,
    "DBT_INTERNAL_DEST.a % 2 = 0 OR DBT_INTERNAL_DEST.s = 'b'": lambda old, _: _or(
        None if old[2] is None else old[2] % 2 == 0, None if old[3] is None else old[3] == "b"
    ),
}

WITH_SOURCE: dict[str, Callable[[Row, Row], bool | None]] = {
    "DBT_INTERNAL_SOURCE.a <> DBT_INTERNAL_DEST.a": lambda old, new: (
        None if None in (old[2], new[2]) else old[2] != new[2]
    ),
    "DBT_INTERNAL_SOURCE.x >= DBT_INTERNAL_DEST.x": lambda old, new: (
        None if None in (old[4], new[4]) else new[4] >= old[4]
    ),
}


def _or(one: bool | None, other: bool | None) -> bool | None:
    return True if one or other else None if None in (one, other) else False


@dataclass(frozen=True)
class Case:
    """A random merge.

    Attributes:
        kind: type of the column ``k``.
        table, batch: rows of the table and of the batch.
        merge: the merge.
        tests: its predicates in Python.
        partitioned: whether the table has the partition column ``p``.
    """

    kind: str
    table: list[Row]
    batch: list[Row]
    merge: Merge
    tests: Sequence[Callable[[Row, Any], bool | None]] = field(default=())
    partitioned: bool = False

    @property
    def ddl(self) -> str:
        return f"k {self.kind}, k2 STRING, a INT, s STRING, x DOUBLE, p INT"


def make_case(seed: int) -> Case:
    """Return a random merge, the same for the same number."""
    chance = random.Random(seed)
    kind = chance.choice(list(KEYS))
    pool = chance.choice([6, 30, 200])
    replaces = chance.random() < 0.3

    def row(number: int) -> Row:
        key = None if chance.random() < 0.05 else KEYS[kind](number)
        return (
            key,
            chance.choice(["x", "y", None]) if chance.random() < 0.2 else "x",
            chance.choice([None, *range(8)]),
            chance.choice([None, "a", "b", "c"]),
            chance.choice([None, math.nan, 0.0, -0.0, 1.0, 2.5]),
            number % 3,
        )

    numbers = [chance.randrange(pool) for _ in range(chance.choice([0, 3, 40, 150]))]
    if chance.random() < 0.7:
        numbers = list(dict.fromkeys(numbers))
    table = [row(number) for number in numbers]
    asked = [chance.randrange(pool) for _ in range(chance.choice([0, 1, 5, 30]))]
    if chance.random() < 0.85:
        asked = list(dict.fromkeys(asked))
    batch = [row(number) for number in asked]
    # rows that a source delivers once more change nothing
    batch = [chance.choice(table) if table and chance.random() < 0.2 else one for one in batch]
    predicates = [name for name in PREDICATES if chance.random() < 0.15]
    tests: list[Callable[[Row, Any], bool | None]] = [PREDICATES[name] for name in predicates]
    if not replaces:
        more = [name for name in WITH_SOURCE if chance.random() < 0.1]
        predicates, tests = predicates + more, tests + [WITH_SOURCE[name] for name in more]
    which = chance.random()
    merge = Merge(
        unique_key=chance.choice([["k"], ["K"], ["k", "k2"], ["k", "k"]]),
        update_columns=["a", "s"] if which < 0.2 and not replaces else None,
        exclude_columns=["s", "x"] if which > 0.8 and not replaces else [],
        predicates=predicates,
        replaces_rows=replaces,
    )
    return Case(kind, table, batch, merge, tests, partitioned=chance.random() < 0.2)


def result(case: Case) -> list[Row] | None:
    """Return the rows of the table after a merge; None if two rows of the batch match one row of the table."""
    places = [COLUMNS.index(name.lower()) for name in case.merge.unique_key]
    updated = [place for place, name in enumerate(COLUMNS) if _is_updated(case.merge, name)]
    after: list[Row] = []
    matched: set[int] = set()
    for old in case.table:
        found = [number for number, new in enumerate(case.batch) if _matches(case, old, new, places)]
        if case.merge.replaces_rows:
            after += [] if found else [old]
            continue
        if len(found) > 1:
            return None
        matched.update(found)
        new = case.batch[found[0]] if found else old
        after.append(tuple(new[place] if place in updated else old[place] for place in range(len(COLUMNS))))
    return after + [new for number, new in enumerate(case.batch) if number not in matched]


def _is_updated(merge: Merge, name: str) -> bool:
    return name in (merge.update_columns or COLUMNS) and name not in merge.exclude_columns


def _matches(case: Case, old: Row, new: Row, places: Sequence[int]) -> bool:
    return all(_equal(old[place], new[place]) for place in places) and all(test(old, new) for test in case.tests)


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def counted(rows: Sequence[Sequence[Any]]) -> Counter[Row]:
    """Return how often each row occurs."""
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return bytes(value) if isinstance(value, (bytes, bytearray)) else value
