"""Reckon how well the files of a table serve queries, and what a rewrite would change, from statistics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dbt_zorder.humanize import counted, size_text
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.depth import Depth, depth_of
from dbt_zorder.stats.summary import Summary, add_up, folders_of, rows_by_folder
from dbt_zorder.tables.batch_size import NOT_BUILT, target_bytes
from dbt_zorder.tables.rewrite_policy import BOUND, Overlap, overlap_of

SMALL = 0.25
"""A file below this share of the target size is small."""

FEW = 0.1
"""Batches of less than this share of a table's bytes are no reason to rewrite it."""


@dataclass(frozen=True)
class FileFacts:
    """What statistics, footers and the listing say of a table's files.

    Attributes:
        files: one row a file, as ``summary.gather`` returns it for ``keys``, with NULL counts.
        keys: the columns to examine.
        built: figures of the last whole layout by these columns; zeros if it is unknown, or was by others.
        partitions: number of partitions of that layout.
        by_bucket: whether each bucket of a folder has files of its own.
        command: the statement by which a table's own format clusters it; empty if only dbt-zorder does.
        is_own: whether dbt-zorder manages the table's versions.
    """

    files: pa.Table
    keys: Sequence[Key]
    built: Summary = NOT_BUILT
    partitions: int = 1
    by_bucket: bool = False
    command: str = ""
    is_own: bool = False


@dataclass(frozen=True)
class ColumnHealth:
    """How well the files of a table are clustered by one column.

    Attributes:
        depth: mean number of files that an equality query reads, weighted by rows.
        deepest: largest number of files that contain one value.
        overlaps: mean number of other files whose range meets that of a file.
        unbounded: number of files without bounds, which every query reads.
        after: number of files that an equality query is expected to read after a rewrite.
        at_build: mean number of files that it read after the last whole layout; None if that is unknown.
    """

    depth: float
    deepest: int
    overlaps: float
    unbounded: int
    after: float
    at_build: float | None


@dataclass(frozen=True)
class TableHealth:
    """The health of a table.

    Attributes:
        table: name of the table.
        files, bytes, rows: size of the table; ``rows`` counts files with statistics only.
        target_bytes: size of a file that a rewrite aims at.
        small_files: number of files below a quarter of that size; the only file of a partition does not count.
        without_stats: number of files whose number of rows is unknown, because they have neither statistics nor a
            footer that this process can read.
        new_files, new_bytes: size of the files that batches added since the last whole layout; None if it is unknown.
        files_after: number of files that a rewrite is expected to make.
        columns: figures of each examined column.
        command: the command or statement that rewrites the table; empty if no columns to cluster by are given.
    """

    table: str
    files: int
    bytes: int
    rows: int
    target_bytes: int
    small_files: int
    without_stats: int
    new_files: int | None
    new_bytes: int | None
    files_after: int
    columns: Mapping[str, ColumnHealth]
    command: str

    @property
    def is_fresh(self) -> bool:
        """Whether few files and few bytes came since a whole layout by these columns, so that a rewrite repeats it."""
        if self.new_files is None or self.new_bytes is None:
            return False
        return self.new_bytes < FEW * self.bytes and 2 * self.new_files < self.files

    @property
    def gains(self) -> bool:
        """Whether a rewrite would lower the bytes that queries read by a third, or make many files few."""
        if self.is_fresh:
            return False
        fewer = self.files > BOUND * self.files_after and 2 * self.small_files > self.files
        return fewer or any(now > BOUND * after for now, after in self.shares)

    @property
    def shares(self) -> list[tuple[float, float]]:
        """Share of the table's files that an equality query reads, now and after a rewrite, for each column."""
        files, after = max(1, self.files), max(1, self.files_after)
        return [(one.depth / files, one.after / after) for one in self.columns.values()]

    def __str__(self) -> str:
        return "\n".join([self._head(), *self._columns(), *self._batches(), self._gain()])

    def _head(self) -> str:
        parts = [f"{self.table}: {counted(self.files, 'file')} of {size_text(self.bytes)}, {counted(self.rows, 'row')}"]
        parts.append(f"{self.small_files:,} below a quarter of {size_text(self.target_bytes)}")
        if self.without_stats:
            parts.append(f"{self.without_stats:,} without statistics")
        return ", ".join(parts)

    def _columns(self) -> list[str]:
        if not self.columns:
            return ["  No column is examined: name those that queries filter by, as columns."]
        lines = []
        for name, one in self.columns.items():
            line = f"  a point query on {name} reads {one.depth:,.1f} of {counted(self.files, 'file')}"
            line += f" ({_share(one.depth, self.files)}), {one.deepest:,} at most"
            line += f"; a file overlaps {one.overlaps:,.1f} others"
            if one.unbounded:
                line += f"; {one.unbounded:,} without bounds"
            lines.append(line)
        return lines

    def _batches(self) -> list[str]:
        if not self.new_files:
            return []
        line = f"  {counted(self.new_files, 'file')} of {size_text(self.new_bytes)} came by batches"
        then = [f"{name} {one.at_build:,.1f}" for name, one in self.columns.items() if one.at_build is not None]
        hint = f", when a point query read {', '.join(then)} of {self.files - self.new_files:,}" if then else ""
        return [f"{line} since the last whole layout{hint}"]

    def _gain(self) -> str:
        if not self.gains:
            return "  A rewrite would gain little."
        after = counted(self.files_after, "file")
        reads = [
            f"{one.after:,.1f} ({_share(one.after, self.files_after)}) on {name}" for name, one in self.columns.items()
        ]
        gain = f"  A rewrite would make about {after}"
        gain += f"; a point query would read about {', '.join(reads)}." if reads else "."
        return f"{gain}\n  {self.command}" if self.command else gain

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, with a readable ``text``."""
        return {**asdict(self), "gains": self.gains, "text": str(self)}


def health_of(table: TableName, facts: FileFacts, spec: LayoutSpec, command: str) -> TableHealth:
    """Return the health of a table from the facts of its files.

    Args:
        table: name of the table.
        facts: its files.
        spec: settings of a rewrite.
        command: the command that rewrites it.
    """
    depths = {key.column.name: _depth(facts.files, number) for number, key in enumerate(facts.keys)}
    now = add_up(facts.files, facts.keys)
    target = target_bytes(spec, facts.built, now.bytes)
    overlap = _overlap(facts, now, target, spec)
    is_known = facts.built.files > 0
    return TableHealth(
        table=str(table),
        files=now.files,
        bytes=now.bytes,
        rows=now.rows,
        target_bytes=target,
        small_files=_count_small(facts, target),
        without_stats=facts.files["row_count"].null_count,
        new_files=max(0, now.files - facts.built.files) if is_known else None,
        new_bytes=max(0, now.bytes - facts.built.bytes) if is_known else None,
        files_after=overlap.files_after,
        columns={
            name: ColumnHealth(
                depth=round(one.mean, 2),
                deepest=one.deepest,
                overlaps=round(one.overlaps, 2),
                unbounded=one.unbounded,
                after=_after(one, overlap, name, is_measured=name in facts.built.point_query_files),
                at_build=facts.built.point_query_files.get(name),
            )
            for name, one in depths.items()
        },
        command=command,
    )


def _depth(files: pa.Table, number: int) -> Depth:
    low, high, nulls = (one_chunk(files[f"{name}{number}"]) for name in ("min_value", "max_value", "null_count"))
    return depth_of(low, high, one_chunk(files["row_count"]), nulls)


def _after(depth: Depth, overlap: Overlap, name: str, *, is_measured: bool) -> float:
    """Return the number of files that a query is expected to read after a rewrite.

    The figures of a build come from bounds alone, as ``point_query_files`` has them. So they are compared with the
    same of today, and the depth is lowered by as much.
    """
    after, now = overlap.touched_after.get(name, 1.0), overlap.now.point_query_files.get(name, 0.0)
    if is_measured and now:
        after *= (depth.mean - depth.unbounded) / now
    return round(min(max(1.0, after), float(overlap.files_after)), 2)


def _overlap(facts: FileFacts, now: Summary, target: int, spec: LayoutSpec) -> Overlap:
    rows = rows_by_folder(facts.files, by_bucket=facts.by_bucket)
    return overlap_of(rows, now, facts.built, facts.partitions, target, spec)


def _count_small(facts: FileFacts, target: int) -> int:
    """Return the number of small files that share their partition with others."""
    folders = one_chunk(folders_of(facts.files, by_bucket=facts.by_bucket)).dictionary_encode().indices.to_numpy()
    if not len(folders):
        return 0
    has_others = np.bincount(folders)[folders] > 1
    return int((has_others & (facts.files["file_size"].to_numpy() < SMALL * target)).sum())


def _share(part: float, whole: int) -> str:
    return f"{100 * part / max(1, whole):.0f}%"
