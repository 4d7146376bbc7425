"""Decide when a table needs a rewrite.

Compare the files that a point query reads now with those that it would read after a whole rewrite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dbt_zorder.layout.file_count import files_for
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.stats.summary import Summary

BOUND = 1.5
"""A point query may read this many times as many files as after a whole rewrite."""


@dataclass(frozen=True)
class Overlap:
    """Figures of a table, and those expected after a whole rewrite.

    Attributes:
        now: figures from the current stats.
        built_bytes: size of the table after its last whole build; 0 if it is missing.
        files_after: number of files that a rewrite would make.
        touched_after: number of files that an equality query is expected to read after it, by clustering column.
    """

    now: Summary
    built_bytes: int
    files_after: int
    touched_after: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Files read now over files read after a rewrite, for the worst column; 1.0 for an empty table."""
        return max((self.now.point_query_files[c] / after for c, after in self.touched_after.items()), default=1.0)

    @property
    def is_due(self) -> bool:
        """Whether a rewrite pays: it gains much, and the table has at least doubled since the last one.

        The second condition limits the bytes of all rewrites to twice those of the table. With its appends, the table
        has then been written at most three times.
        """
        return self.ratio > BOUND and self.now.bytes >= 2 * self.built_bytes


class TableState(Protocol):
    """The state of a table between two batches."""

    def overlap(self, spec: LayoutSpec) -> Overlap:
        """Measure the table by the bounds of its clustering columns, against a rewrite by ``spec``."""


def overlap_of(
    rows: Sequence[int], now: Summary, built: Summary, partitions: int, target: int, spec: LayoutSpec
) -> Overlap:
    """Compare the figures of a table with those of its last whole build.

    Args:
        rows: number of rows in each partition.
        now: figures of the whole table.
        built: figures of the last whole build, which had ``partitions`` partitions; zeros if they are missing.
        partitions: number of partitions of the last whole build.
        target: target size of a file in a new build, in bytes.
        spec: layout settings of a new build.
    """
    files = _files_after(rows, now, target, spec)
    return Overlap(now, built.bytes, sum(files), expected(built, partitions, files, list(now.point_query_files)))


def expected(built: Summary, partitions: int, files: Sequence[int], columns: Sequence[str]) -> dict[str, float]:
    """Return the number of files that an equality query will read after a rewrite, by column.

    Args:
        built: figures of the last whole build, which had ``partitions`` partitions.
        partitions: number of partitions of the last whole build.
        files: number of files in each partition after the rewrite.
        columns: the clustering columns.
    """
    exponent = (len(columns) - 1) / max(1, len(columns))
    before = partitions * max(1.0, built.files / partitions) ** exponent
    scale = sum(count**exponent for count in files) / before
    found = {}
    for column in columns:
        touched = built.point_query_files.get(column, 0.0) or before
        found[column] = round(min(max(1.0, touched * scale), float(sum(files))), 2)
    return found


def _files_after(rows: Sequence[int], now: Summary, target: int, spec: LayoutSpec) -> list[int]:
    """Return the number of files that a build would make of each partition."""
    if now.rows == 0:
        return [1]
    if spec.files is not None:
        return [max(1, min(spec.files, count)) for count in rows]
    return [files_for(count, now.bytes / now.rows, target) for count in rows]
