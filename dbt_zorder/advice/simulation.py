"""Predict which files a scan reads under a layout, by the boxes of a sample's rows in each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dbt_zorder.advice.condition import Either, Every
from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.tree import Forest, descend, grow
from dbt_zorder.layout.file_count import files_of_parts
from dbt_zorder.pruning.files.exclusion import worthwhile

Places = npt.NDArray[np.int64]
"""Places on the line of a column: 2r is the value of rank r in the sample, 2r + 1 is between it and the next."""


@dataclass(frozen=True)
class Ranges:
    """Values of a column that match a comparison or a lookup.

    Attributes:
        column: number of the column.
        starts, ends: first and last place of each range; the ranges are in order and apart.
        nulls: whether NULL matches.
    """

    column: int
    starts: Places
    ends: Places
    nulls: bool = False

    @classmethod
    def points(cls, column: int, places: Sequence[int]) -> Ranges:
        """Return the ranges of single places, in any order."""
        found = np.unique(np.asarray(places, dtype=np.int64))
        return cls(column, found, found)


Test: TypeAlias = "Ranges | Every[Test] | Either[Test]"


@dataclass(frozen=True)
class Read:
    """A scan, as a simulation needs it.

    Attributes:
        name: name of its query.
        test: what it asks of the rows; None if it reads every file.
        weight: how often it runs.
        width: share of a row's bytes that it reads, since Parquet reads only the columns that a query needs.
        columns: names of the columns that its test bounds.
        equalities: names of the columns that it compares by ``=`` or ``IN``, if it asks nothing else; else empty.
    """

    name: str
    test: Test | None
    weight: float = 1.0
    width: float = 1.0
    columns: frozenset[str] = frozenset()
    equalities: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SampledTable:
    """A sample of a table's rows, and the files that the table would have.

    Attributes:
        columns: names of the columns.
        ranks: ranks of the sampled rows in these columns, shape (rows, columns).
        rows: number of rows of the table.
        row_bytes: bytes of a row on disk.
        target_bytes: bytes that a file should have.
        files: number of files of each partition, in place of a size; None for the size.
        partition_by: names of the partition columns; they are among ``columns``.
        stats: names of the columns that have statistics under every layout; None for all columns.
        present_stats: names of the columns that have statistics now.
        present: number of the file of each sampled row, as the table is now; None if that is not found.
        present_files: number of files, as the table is now.
    """

    columns: tuple[str, ...]
    ranks: Ranks
    rows: int
    row_bytes: float
    target_bytes: int
    files: int | None = None
    partition_by: tuple[str, ...] = ()
    stats: frozenset[str] | None = frozenset()
    present_stats: frozenset[str] = frozenset()
    present: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    present_files: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether the sample has every row."""
        return len(self.ranks) >= self.rows

    def distinct(self, column: str) -> int:
        """Return the number of different values of a column in the sample, without NULL."""
        values = self.ranks[:, self.columns.index(column)]
        return len(np.unique(values[values > 0]))


@dataclass(frozen=True)
class Candidate:
    """A layout that a table may have. With no columns and no partitions of its own, the files stay as they are.

    Attributes:
        by: columns to cluster by.
        weights: weight of each, None for equal ones.
        partition_by: partition columns.
        stats: further columns with statistics; those of ``by`` always have them.
    """

    by: tuple[str, ...] = ()
    weights: tuple[int, ...] | None = None
    partition_by: tuple[str, ...] = ()
    stats: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.by) + len(self.partition_by)

    @property
    def config(self) -> str:
        """The config of a model, ready to paste; empty if the table stays as it is."""
        parts = []
        if self.stats and not self.columns:
            parts.append('post_hook="{{ zorder_stats(this, ' + repr(list(self.stats)) + ') }}"')
        if self.partition_by:
            parts.append(f"partition_by={list(self.partition_by)!r}")
        if self.by:
            parts.append(f"zorder_by={list(self.by)!r}")
        if self.weights is not None:
            parts.append(f"zorder_weights={dict(zip(self.by, self.weights, strict=True))!r}")
        if self.stats and self.columns:
            parts.append(f"zorder_stats_columns={list(self.stats)!r}")
        return ", ".join(parts)

    def __str__(self) -> str:
        if not self.columns:
            return f"as it is now, and statistics of {', '.join(self.stats)}" if self.stats else "as it is now"
        weights = self.weights or (1,) * len(self.by)
        by = ", ".join(
            name if weight == 1 else f"{name} ({weight})" for name, weight in zip(self.by, weights, strict=True)
        )
        names = (
            ("partition by", ", ".join(self.partition_by)),
            ("z-order by", by),
            ("statistics of", ", ".join(self.stats)),
        )
        return ", ".join(f"{what} {of}" for what, of in names if of)

    def covered(self, table: SampledTable) -> frozenset[str]:
        """Return the names of the columns whose statistics leave out files."""
        if not self.columns:
            return table.present_stats.union(self.stats, table.partition_by)
        if table.stats is None:
            return frozenset(table.columns)
        return table.stats.union(self.by, self.stats, self.partition_by or table.partition_by)


@dataclass(frozen=True)
class Boxes:
    """Bounds of the files of a layout. Files that a hash fills have one box together.

    Attributes:
        low, high: least and greatest place of each column in each box, shape (boxes, columns).
        nulls: whether a column has NULL in a box, same shape.
        rows: share of the table's rows in each box, shape (boxes,).
        files: number of files of each box, same shape.
    """

    low: Places
    high: Places
    nulls: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.float64]
    files: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Prediction:
    """What a workload reads under a layout.

    Attributes:
        candidate: the layout.
        files: number of files of the table.
        files_read: mean number of files that a scan with a filter reads.
        share: share of the bytes that all scans read, of what they read if no file is left out.
        shares: share of the rows that each scan reads.
    """

    candidate: Candidate
    files: int
    files_read: float
    share: float
    shares: tuple[float, ...] = field(repr=False)


def predict(table: SampledTable, candidate: Candidate, reads: Sequence[Read], boxes: Boxes | None = None) -> Prediction:
    """Predict what scans read if a table had a layout; ``boxes`` are those of ``lay_out``, if they are at hand."""
    boxes = boxes or lay_out(table, candidate)
    covered = candidate.covered(table)
    numbers = frozenset(number for number, name in enumerate(table.columns) if name in covered)
    files = int(boxes.files.sum())
    shares, counts = [], []
    for read in reads:
        hit = np.ones(len(boxes.rows), dtype=np.bool_) if read.test is None else match(read.test, boxes, numbers)
        share, count = float(boxes.rows[hit].sum()), int(boxes.files[hit].sum())
        if not worthwhile(table.rows, round(share * table.rows)):
            share, count = 1.0, files
        shares.append(share)
        counts.append(count)
    weights = np.asarray([read.weight for read in reads])
    bytes_of = weights * np.asarray([read.width for read in reads])
    filtered = weights * np.asarray([read.test is not None for read in reads])
    mean = float(np.dot(filtered, counts) / filtered.sum()) if filtered.any() else float(files)
    share = float(np.dot(bytes_of, shares) / bytes_of.sum()) if bytes_of.any() else 1.0
    return Prediction(candidate, files, mean, share, tuple(shares))


def match(test: Test, boxes: Boxes, covered: frozenset[int]) -> npt.NDArray[np.bool_]:
    """Return for each box whether its bounds allow a matching row.

    Args:
        test: what a scan asks.
        boxes: bounds of files.
        covered: numbers of the columns that have statistics.
    """
    if isinstance(test, Every | Either):
        found = [match(term, boxes, covered) for term in test.terms]
        both = np.logical_and if isinstance(test, Every) else np.logical_or
        return np.asarray(both.reduce(found), dtype=np.bool_)
    if test.column not in covered:
        return np.ones(len(boxes.rows), dtype=np.bool_)
    low, high = boxes.low[:, test.column], boxes.high[:, test.column]
    hit: npt.NDArray[np.bool_] = np.zeros(len(low), dtype=np.bool_)
    if len(test.starts):
        after = np.searchsorted(test.ends, low)  # the first range that does not end before the box
        hit = (after < len(test.ends)) & (test.starts[np.minimum(after, len(test.ends) - 1)] <= high)
    return hit | boxes.nulls[:, test.column] if test.nulls else hit


def lay_out(table: SampledTable, candidate: Candidate) -> Boxes:
    """Return the boxes of a layout. The tree is the one that a build grows over its own sample."""
    if not candidate.columns:
        if table.present is None:
            return _boxes(table, np.zeros(len(table.ranks), dtype=np.int64), {0: table.present_files})
        return _boxes(table, table.present.astype(np.int64), {})
    trees = trees_of(table, candidate.partition_by or table.partition_by)
    files = files_of_trees(table, trees)
    if not candidate.by:
        return _boxes(table, trees.astype(np.int64), dict(enumerate(files)))
    by = [table.columns.index(name) for name in candidate.by]
    ranks = np.ascontiguousarray(table.ranks[:, by])
    forest = grow(ranks, trees, files, 0, candidate.weights)
    cells = descend(forest, ranks, trees)
    return _boxes(table, cells, dict(enumerate(forest.file_count.tolist())), _edges(forest, by))


def files_of_trees(table: SampledTable, trees: npt.NDArray[np.int32]) -> list[int]:
    """Return the number of files of each partition, at least 1, as a build chooses it."""
    counts = np.rint(np.bincount(trees) * (table.rows / max(1, len(trees)))).astype(np.int64)
    if table.files is not None:
        return [max(1, min(table.files, count)) for count in counts.tolist()]
    return files_of_parts(counts, table.row_bytes, table.target_bytes)


def trees_of(table: SampledTable, partition_by: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the number of the partition of each sampled row, shape (rows,)."""
    if not partition_by:
        return np.zeros(len(table.ranks), dtype=np.int32)
    numbers = [table.columns.index(name) for name in partition_by]
    return np.unique(table.ranks[:, numbers], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


def _edges(forest: Forest, by: Sequence[int]) -> dict[int, tuple[Places, Places]]:
    """Return the least and greatest place that the cuts leave each cell, by number of a column."""
    edges = {}
    for place, column in enumerate(by):
        low = np.ones(forest.trees, dtype=np.int64)
        high = np.full(forest.trees, np.iinfo(np.int64).max)
        for level in forest.cuts[: forest.file_levels]:
            cut = level[place].astype(np.int64)
            low, high = np.repeat(low, 2), np.repeat(high, 2)
            low[1::2] = np.where(cut > 0, np.maximum(low[1::2], 2 * cut), low[1::2])
            high[::2] = np.where(cut > 0, np.minimum(high[::2], 2 * cut - 1), high[::2])
        edges[column] = low, high
    return edges


def _boxes(
    table: SampledTable,
    cells: npt.NDArray[np.int64],
    files: Mapping[int, int],
    edges: Mapping[int, tuple[Places, Places]] | None = None,
) -> Boxes:
    """Return the boxes of cells that contain rows.

    Between two values of a sample, the table may have others. So a box reaches half a rank further than its values, up
    to the cuts of its cell.

    Args:
        table: the sampled table.
        cells: cell of each row.
        files: number of files of each cell, 1 where it is missing.
        edges: places that the cuts leave each cell, see ``_edges``.
    """
    order = np.argsort(cells, kind="stable")
    found, first = np.unique(cells[order], return_index=True)
    values = table.ranks[order].astype(np.int64)
    empty = values == 0
    gap = 0 if table.is_whole else 1
    low = 2 * np.minimum.reduceat(np.where(empty, np.iinfo(np.int32).max, values), first, axis=0) - gap
    high = 2 * np.maximum.reduceat(values, first, axis=0) + gap
    for column, (least, most) in (edges or {}).items():
        low[:, column] = np.maximum(low[:, column], least[found])
        high[:, column] = np.minimum(high[:, column], most[found])
    nulls = np.logical_or.reduceat(empty, first, axis=0)
    rows = np.diff(np.append(first, len(cells))) / max(1, len(cells))
    return Boxes(low, high, nulls, rows, np.asarray([files.get(int(cell), 1) for cell in found], dtype=np.int64))
