"""Collect the keys of a side of a join, in the form in which Python compares them as Spark does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from dbt_zorder.pruning.condition.like import REPLACEMENT
from dbt_zorder.pruning.condition.types import Family, family
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.jvm import frame_of_plan

ROWS_AT_MOST = 50_000
"""Maximum number of rows of a side whose keys are listed; of more rows, only the smallest and largest key is read."""

_SECONDS = "decimal(20,6)"
"""Type of a moment in seconds since 1970, exact to the microsecond and the same in every time zone."""

_COMPARED = frozenset({Family.INTEGRAL, Family.DECIMAL, Family.STRING, Family.DATE, Family.TIMESTAMP})

_BY_ARROW = _COMPARED - {Family.STRING}
"""Types whose values Arrow transfers unchanged, in less time than rows; it refuses a text that is not UTF-8."""


@dataclass(frozen=True)
class Keys:
    """Keys of one column of a side, without NULL.

    Attributes:
        values: distinct keys in ascending order; if ``complete`` is False, only the smallest and the largest.
        complete: whether every key is listed.
    """

    values: Sequence[Any]
    complete: bool = True

    def meet(self, op: str, low: Any, high: Any) -> bool:
        """Return whether a value between two bounds may compare with a key.

        Args:
            op: one of ``= < <= > >=``; the key is to its right.
            low, high: bounds of the values.
        """
        if not self.values:
            return False
        least, largest = self.values[0], self.values[-1]
        match op:
            case "=" if self.complete:
                place = bisect_left(self.values, low)
                return place < len(self.values) and bool(self.values[place] <= high)
            case "=":
                return bool(low <= largest and high >= least)
            case "<":
                return bool(low < largest)
            case "<=":
                return bool(low <= largest)
            case ">":
                return bool(high > least)
        return bool(high >= least)


def is_compared(data_type: DataType) -> bool:
    """Return whether Python compares values of a type as Spark does: floats differ by NaN and by the sign of 0."""
    return family(data_type) in _COMPARED


def compared(column: SparkColumn, data_type: DataType) -> SparkColumn:
    """Return a column in the form that Python compares."""
    return column.cast(_SECONDS) if family(data_type) is Family.TIMESTAMP else column


def is_exact(value: Any) -> bool:
    """Return whether a value reaches Python as it is: Spark replaces invalid UTF-8."""
    return not isinstance(value, str) or REPLACEMENT not in value


@dataclass(frozen=True)
class SideRows:
    """Rows of a side of a join.

    Attributes:
        kinds: types of the columns.
        rows: values of each row; None if there are too many.
        ends: smallest and largest value of each column, if there are too many rows.
    """

    kinds: Sequence[DataType]
    rows: Sequence[Sequence[Any]] | None
    ends: Sequence[tuple[Any, Any]] = ()

    @property
    def size(self) -> int:
        """Return the number of values."""
        return len(self.kinds) * (2 if self.rows is None else len(self.rows))

    def keys(self, column: int, tests: Sequence[tuple[int, str, Keys]] = ()) -> Keys | None:
        """Return the keys in a column; None if Python does not compare its values as Spark does.

        Args:
            column: index of the column.
            tests: column, operator and keys of the tests that a row must pass; they are left out of too many rows.
        """
        if not is_compared(self.kinds[column]):
            return None
        if self.rows is None:
            values, complete = [one for one in self.ends[column] if one is not None], False
        else:
            passed = (row for row in self.rows if all(_passes(row[place], op, keys) for place, op, keys in tests))
            values, complete = sorted({row[column] for row in passed} - {None}), True
        return Keys(values, complete) if all(map(is_exact, values)) else None


def _passes(value: Any, op: str, keys: Keys) -> bool:
    """Return whether a value may compare with a key; one that reached Python changed may compare with any."""
    return value is not None and (not is_exact(value) or keys.meet(op, value, value))


def collect_rows(spark: SparkSession, side: Any, places: Sequence[int]) -> SideRows:
    """Return the rows of a plan's columns.

    Args:
        spark: session in this process.
        side: plan of the JVM, which is run.
        places: indexes of the columns in the plan's output.
    """
    return collect_columns(frame_of_plan(spark, side), places)


def collect_columns(rows: DataFrame, places: Sequence[int]) -> SideRows:
    """Return the rows of a DataFrame's columns, which are given by their indexes."""
    rows = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
    kinds = [rows.schema[place].dataType for place in places]
    chosen = [
        compared(rows[f"c{place}"], kind).alias(f"k{number}")
        for number, (place, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    keys = rows.select(*chosen)
    listed = _rows(keys.limit(ROWS_AT_MOST + 1), kinds)
    if len(listed) <= ROWS_AT_MOST:
        return SideRows(kinds, listed)
    row = keys.agg(*(end(f"k{number}") for number in range(len(kinds)) for end in (f.min, f.max))).collect()[0]
    return SideRows(kinds, None, [(row[2 * number], row[2 * number + 1]) for number in range(len(kinds))])


def _rows(frame: DataFrame, kinds: Sequence[DataType]) -> Sequence[Sequence[Any]]:
    if not all(family(kind) in _BY_ARROW for kind in kinds):
        return frame.collect()
    columns = collect_arrow(frame).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
