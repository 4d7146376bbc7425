"""Read the bounds of a column in each file to Python, which compares thousands of keys with them at once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from dbt_zorder.pruning.files.evaluate import stats_names, with_names
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.joins.keys import Keys, compared, is_exact
from dbt_zorder.pruning.predicate.tree import Column

_read: WeakKeyDictionary[DataFrame, dict[Column, ColumnBounds]] = WeakKeyDictionary()
_totals: WeakKeyDictionary[DataFrame, Totals] = WeakKeyDictionary()
_rows: WeakKeyDictionary[DataFrame, Sequence[FileRows]] = WeakKeyDictionary()


class Totals(NamedTuple):
    """Number of files in the statistics, their rows and their bytes."""

    files: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class FileRows:
    """A file and the number of its rows.

    Attributes:
        path: path of the file.
        size: bytes of the file.
        rows: number of its rows.
    """

    path: str
    size: int
    rows: int


@dataclass(frozen=True)
class FileBounds(FileRows):
    """Bounds of a column in a file.

    Attributes:
        nulls: number of rows in which the column is NULL.
        low, high: bounds of the other values; None if all values are NULL.
    """

    nulls: int
    low: Any
    high: Any


@dataclass(frozen=True)
class ColumnBounds:
    """Bounds of a column in each file with sound statistics of it."""

    files: Sequence[FileBounds]

    @cached_property
    def share_apart(self) -> float:
        """Return the share of pairs of files whose bounds do not overlap: no key can be in both files of such a pair.

        It is near 0 for a column that the layout ignores; then no keys exclude files.
        """
        lows = sorted(one.low for one in self.files if one.low is not None)
        highs = sorted(one.high for one in self.files if one.low is not None)
        if len(lows) < 2:
            return 0.0
        below = sum(bisect_left(highs, low) for low in lows)  # files that end before another one begins
        return 2 * below / (len(lows) * (len(lows) - 1))

    def without(self, op: str, keys: Keys) -> dict[str, FileBounds]:
        """Return by path the files without a value that compares by ``op`` with one of the keys."""
        return {one.path: one for one in self.files if one.low is None or not keys.meet(op, one.low, one.high)}


def read_totals(stats: Stats) -> Totals:
    """Return the totals over all files, which are read once for each frame of statistics."""
    assert stats.frame is not None
    if stats.frame not in _totals:
        row = stats.frame.selectExpr("count(*)", "sum(row_count)", "sum(file_size)").collect()[0]
        _totals[stats.frame] = Totals(row[0], row[1] or 0, row[2] or 0)
    return _totals[stats.frame]


def read_rows(stats: Stats) -> Sequence[FileRows]:
    """Return the files in the statistics with their rows, without files whose entries are unsound or repeated.

    They are read once for each frame of statistics.
    """
    assert stats.frame is not None
    if stats.frame not in _rows:
        _rows[stats.frame] = _file_rows(stats.frame)
    return _rows[stats.frame]


def _file_rows(frame: DataFrame) -> Sequence[FileRows]:
    rows = frame.select("file_path", "file_size", "row_count").collect()
    times = Counter(row[0] for row in rows)
    return [
        FileRows(path, size, count)
        for path, size, count in rows
        if _is_identified(path, size, times) and (count if count is not None else -1) >= 0
    ]


def read_bounds(stats: Stats, column: Column) -> ColumnBounds:
    """Return the bounds of a column that statistics cover, without those of files with unsound or repeated entries.

    They are read once for each frame of statistics.
    """
    assert stats.frame is not None
    read = _read.setdefault(stats.frame, {})
    if column not in read:
        read[column] = _bounds(stats.frame, column)
    return read[column]


def _bounds(frame: DataFrame, column: Column) -> ColumnBounds:
    names = stats_names([column])
    named = with_names(frame, names)
    ends = [compared(expr(sql), column.data_type) for sql in (names.min_value(column), names.max_value(column))]
    measures = [expr(names.null_count(column)), expr(names.sound(column)), *ends]
    rows = named.select("file_path", "file_size", "row_count", *measures).collect()
    times = Counter(row[0] for row in rows)
    return ColumnBounds(
        [
            FileBounds(path, size, count, nulls, low, high)
            for path, size, count, nulls, is_sound, low, high in rows
            if is_sound and _is_identified(path, size, times) and is_exact(low) and is_exact(high)
        ]
    )


def _is_identified(path: str | None, size: int | None, times: Mapping[str | None, int]) -> bool:
    """Return whether path and size identify a file: the path has one entry, and the size is valid."""
    return path is not None and times[path] == 1 and (size or -1) >= 0
