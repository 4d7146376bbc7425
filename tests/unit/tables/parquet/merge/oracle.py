"""Random merges, and what they make of a table by plain Python: row by row, with SQL's rules for NULL, NaN and -0.0."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.tables.merge import Merge

Row = Mapping[str, Any]

KEYS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda n: n - 5,
    "INT": lambda n: n * 1_000_003 % 97,
    "SMALLINT": lambda n: n * 331 % 32_768 - 16_384,
    "STRING": lambda n: ["", "a", "A", " a", "a ", "é", "𝄞", "null", "0", "00"][n % 10] + str(n // 10),
    "BINARY": lambda n: bytes([n % 256, 0]),
    "DATE": lambda n: date(1999, 12, 25) + timedelta(n),
    "TIMESTAMP": lambda n: datetime(2020, 3, 29, 0, 0) + timedelta(minutes=17 * n, microseconds=n),
    "TIMESTAMP_NTZ": lambda n: datetime(2020, 3, 29, 0, 0) + timedelta(minutes=17 * n, microseconds=n),
    "DECIMAL(9,3)": lambda n: Decimal(n * 7 - 40) / 8,
    "DECIMAL(20,2)": lambda n: Decimal(n * 7 - 40) / 4,
    "FLOAT": lambda n: [math.nan, -0.0, 0.0, math.inf, 1.5][n % 5] if n < 5 else n / 4,
    "DOUBLE": lambda n: [math.nan, -0.0, 0.0, math.inf, 1.5][n % 5] if n < 5 else n / 3,
    "BOOLEAN": lambda n: n % 2 == 0,
}
"""Values of each type that a key may have, by number."""

NOT_HASHED, NOT_CLUSTERED = ("FLOAT", "DOUBLE"), ("BOOLEAN", "BINARY")
"""Types of a key that a hash index does not have, and that the cases do not z-order by."""

RETYPED = {"SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "INT", "DECIMAL(9,3)": "DECIMAL(20,3)"}
"""Types that a column may get in place of another one, with the same values."""

SECOND_KEYS: dict[str, list[Any]] = {
    "STRING": ["x", "y"],
    "INT": [0, -1],
    "DATE": [date(2024, 2, 29), date(1, 1, 1)],
    "BOOLEAN": [True, False],
    "DECIMAL(38,10)": [Decimal("0.1"), Decimal("-99999999999999999999999999.9999999999")],
}
"""Values of each type that the second column of a key may have."""

Test = Callable[[Row, Row], bool | None]
"""A predicate of an old and a new row; None is SQL's NULL."""

PREDICATES: dict[str, Test] = {
    "DBT_INTERNAL_DEST.a > 3": lambda old, _: None if old["a"] is None else old["a"] > 3,
    "DBT_INTERNAL_DEST.s IS NOT NULL -- the end": lambda old, _: old["s"] is not None,
    "DBT_INTERNAL_DEST.a % 2 = 0 OR DBT_INTERNAL_DEST.s = 'b'": lambda old, _: _or(
        None if old["a"] is None else old["a"] % 2 == 0, None if old["s"] is None else old["s"] == "b"
    ),
}

WITH_SOURCE: dict[str, Test] = {
    "DBT_INTERNAL_SOURCE.a <> DBT_INTERNAL_DEST.a": lambda old, new: (
        None if None in (old["a"], new["a"]) else old["a"] != new["a"]
    ),
    "DBT_INTERNAL_SOURCE.p >= DBT_INTERNAL_DEST.p": lambda old, new: (
        None if None in (old["p"], new["p"]) else new["p"] >= old["p"]
    ),
}


def _or(one: bool | None, other: bool | None) -> bool | None:
    return True if one or other else None if None in (one, other) else False


@dataclass(frozen=True)
class Table:
    """Rows, and the types of their columns by name."""

    columns: Mapping[str, str]
    rows: Sequence[Row]

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a query of one partition."""
        ddl = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return spark.createDataFrame([tuple(row[name] for name in self.columns) for row in self.rows], ddl).coalesce(1)

    def counted(self) -> Counter[tuple[Any, ...]]:
        """Return how often each row occurs."""
        return counted([[row[name] for name in self.columns] for row in self.rows])


@dataclass(frozen=True)
class Step:
    """A random merge.

    Attributes:
        batch: rows of the batch.
        merge: the merge.
        tests: its predicates in Python.
        on_schema_change: what becomes of other columns of the batch.
    """

    batch: Table
    merge: Merge
    tests: Sequence[Test] = field(default=())
    on_schema_change: str = "ignore"


class History:
    """A table and merges into it in turn, the same for the same number.

    Attributes:
        table: the table as it is expected to be now; whoever acts upon it says what it is afterwards.
        by: columns to z-order by.
        partition_by: partition columns.
        hash_index: hash index of the table.
        chance: generator of all that is random.
    """

    def __init__(self, seed: int, *, changes_columns: bool = True) -> None:
        self.chance = random.Random(seed)
        self._kind, self._second = self.chance.choice(list(KEYS)), self.chance.choice(list(SECOND_KEYS))
        self._pool = self.chance.choice([6, 30, 200])
        self._changes_columns = changes_columns and self.chance.random() < 0.35
        columns = {"k": self._kind, "k2": self._second, "a": "INT", "s": "STRING", "x": "DOUBLE", "p": "INT"}
        self.by = ["k", "a"] if self._kind not in NOT_CLUSTERED and self.chance.random() < 0.5 else ["a", "s"]
        self.partition_by = ["p"] if self.chance.random() < 0.2 else []
        self.hash_index: HashIndex | None = None
        if self._kind not in NOT_HASHED and self.chance.random() < 0.3:
            self.hash_index = HashIndex(self.chance.choice([["k"], ["k"], ["K", "k2"]]), self.chance.choice([2, 3, 8]))
        size = self.chance.choice([0, 3, 40, 150, 150])
        self.table = Table(columns, self._rows(columns, size, unique=self.chance.random() < 0.7))

    def _rows(self, columns: Mapping[str, str], count: int, *, unique: bool) -> list[Row]:
        rows = [self._row(columns, self.chance.randrange(self._pool)) for _ in range(count)]
        return list({(row["k"], row["k2"]): row for row in rows}.values()) if unique else rows

    def _row(self, columns: Mapping[str, str], number: int) -> Row:
        chance = self.chance
        second = SECOND_KEYS[self._second]
        row = {
            "k": None if chance.random() < 0.05 else KEYS[self._kind](number),
            "k2": chance.choice([*second, None]) if chance.random() < 0.2 else second[0],
            "a": chance.choice([None, *range(8)]),
            "s": chance.choice([None, "a", "b", "c"]),
            "x": chance.choice([None, math.nan, 0.0, -0.0, 1.0, 2.5]),
            "y": chance.choice([None, "", "new"]),
            "p": chance.choice([None, 0, 1, 2]) if chance.random() < 0.1 else number % 3,
        }
        return {name: row[name] for name in columns}

    def appended(self) -> Table:
        """Return rows to add to the table as they are."""
        return Table(self.table.columns, self._rows(self.table.columns, self.chance.choice([1, 5, 30]), unique=True))

    def step(self) -> Step:
        """Return the next merge."""
        chance = self.chance
        columns, mode = dict(self.table.columns), chance.choice(["ignore", "fail", "append_new_columns"])
        if self._changes_columns and chance.random() < 0.4:
            columns, mode = self._other_columns(columns), chance.choice(["append_new_columns", "sync_all_columns"])
        unique_key = chance.choice([["k"], ["k"], ["K"], ["k", "k2"], ["k", "k2"], ["k", "k"]])
        whole = {name.lower() for name in unique_key}
        # now and then two rows of a batch have one key, which may be an error
        repeats = chance.random() < 0.1
        rows: dict[Any, Row] = {}
        for number in range(chance.choice([0, 1, 5, 5, 30])):
            row = self._row(columns, chance.randrange(self._pool))
            if self.table.rows and chance.random() < 0.2:
                # rows that a source delivers once more change nothing
                row = {**row, **{name: v for name, v in chance.choice(self.table.rows).items() if name in columns}}
            rows[number if repeats else tuple(map(_hashable, (row[name] for name in sorted(whole))))] = row
        batch = Table(columns, list(rows.values()))
        replaces = chance.random() < 0.3
        tests = {name: test for name, test in PREDICATES.items() if chance.random() < 0.15}
        if not replaces:
            tests.update({name: test for name, test in WITH_SOURCE.items() if chance.random() < 0.1})
        which = 0.5 if replaces else chance.random()
        shared = [name for name in ("s", "x", "p") if name in columns and name in self.table.columns]
        merge = Merge(
            unique_key=unique_key,
            update_columns=chance.choice([["a", "s"], ["p"], ["A", *shared]]) if which < 0.2 else None,
            exclude_columns=chance.choice([shared, ["a"]]) if which > 0.8 else [],
            predicates=list(tests),
            replaces_rows=replaces,
        )
        return Step(batch, merge, list(tests.values()), mode)

    def _other_columns(self, columns: dict[str, str]) -> dict[str, str]:
        """Return columns of which one is new, gone, or of another type."""
        change = self.chance.choice(["new", "gone", "both", "type", "order"])
        if change in ("new", "both"):
            columns.update({"x": "DOUBLE", "y": "STRING"})
        if change in ("gone", "both"):
            columns.pop(self.chance.choice(["x", "y"]), None)
        if change == "type":
            name = self.chance.choice(["a", "k"])
            columns[name] = RETYPED.get(columns[name], columns[name])
        if change == "order":
            columns = dict(sorted(columns.items()))
        return columns


def merged(table: Table, step: Step) -> Table | None:
    """Return the table after a merge; None if two rows of the batch match one row."""
    columns = _columns_after(table.columns, step)
    batch = [{name: new.get(name) for name in columns} for new in step.batch.rows]
    keys = {name.lower() for name in step.merge.unique_key}
    updated = [name for name in columns if name in step.batch.columns and _is_updated(step.merge, name)]
    after: list[Row] = []
    matched: set[int] = set()
    for row in table.rows:
        old = {name: row.get(name) for name in columns}
        found = [number for number, new in enumerate(batch) if _matches(step, old, new, keys)]
        if step.merge.replaces_rows:
            after += [] if found else [old]
            continue
        if len(found) > 1:
            return None
        matched.update(found)
        new = batch[found[0]] if found else old
        after.append({**old, **{name: new[name] for name in updated}})
    return Table(columns, after + [new for number, new in enumerate(batch) if number not in matched])


def _columns_after(columns: Mapping[str, str], step: Step) -> dict[str, str]:
    theirs = step.batch.columns
    if step.on_schema_change not in ("append_new_columns", "sync_all_columns"):
        return dict(columns)
    syncs = step.on_schema_change == "sync_all_columns"
    kept = {
        name: theirs.get(name, kind) if syncs else kind for name, kind in columns.items() if name in theirs or not syncs
    }
    return {**kept, **{name: kind for name, kind in theirs.items() if name not in columns}}


def _is_updated(merge: Merge, name: str) -> bool:
    named = merge.update_columns is None or name in [one.lower() for one in merge.update_columns]
    return named and name not in merge.exclude_columns


def _matches(step: Step, old: Row, new: Row, keys: set[str]) -> bool:
    return all(_equal(old[key], new[key]) for key in keys) and all(test(old, new) for test in step.tests)


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def counted(rows: Sequence[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    """Return how often each row occurs."""
    return Counter(tuple(map(_hashable, row)) for row in rows)


def _hashable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return bytes(value) if isinstance(value, (bytes, bytearray)) else value
