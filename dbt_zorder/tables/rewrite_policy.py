"""How far a table has come from its last whole build: files that a point query reads now, and would after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt_zorder.layout.file_count import files_for
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.stats.summary import Summary, add_up, rows_by_folder
from dbt_zorder.tables.parquet.saved_layout import target_bytes
from dbt_zorder.tables.parquet.state import Standing, read_standing

BOUND = 1.5
"""A point query may read this many times the files that it would read after a whole rewrite."""


@dataclass(frozen=True)
class Overlap:
    """Figures of a table beside those that a whole rewrite is expected to give.

    Attributes:
        now: as the stats tell them.
        built_bytes: of the table when it was last built whole; 0 if that is not known.
        files_after: files that a rewrite would make.
        touched_after: by clustering column, the files that an equality query is expected to read then.
    """

    now: Summary
    built_bytes: int
    files_after: int
    touched_after: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Files read now over files read after a rewrite, of the column that is worst off; 1.0 for an empty table."""
        return max((self.now.point_query_files[c] / after for c, after in self.touched_after.items()), default=1.0)

    @property
    def is_due(self) -> bool:
        """Whether a rewrite is worth it: much to gain, and at least as much added as there was after the last one.

        By the second condition the bytes of all rewrites add up to at most twice those of the table, so that with its
        appends it has been written three times at most.
        """
        return self.ratio > BOUND and self.now.bytes >= 2 * self.built_bytes


def measure(spark: SparkSession, table: TableName, info: TableInfo, spec: LayoutSpec) -> Overlap:
    """Measure a table of ours by its stats.

    A rewrite is expected to read as many files as the last one did, scaled: F files that are boxes in k columns have
    F^((k-1)/k) along each, in every partition.

    Raises:
        LookupError: it has no stats.
    """
    return measure_standing(read_standing(spark, info.location, spark.table(table.sql).schema, spec), spec)


def measure_standing(standing: Standing, spec: LayoutSpec) -> Overlap:
    """Measure a version whose files are known."""
    tree, files = standing.tree, standing.files
    assert files is not None
    now = add_up(files, standing.keys)
    built = tree.built if tree is not None else Summary(0, 0, 0, {})
    trees = 1 if tree is None or tree.layout is None else tree.layout.trees
    return overlap_of(rows_by_folder(files), now, built, trees, target_bytes(spec, tree, now.bytes), spec)


def overlap_of(
    rows: Sequence[int], now: Summary, built: Summary, partitions: int, target: int, spec: LayoutSpec
) -> Overlap:
    """Compare the figures of a table with those of its last whole build.

    Args:
        rows: of each partition.
        now: the figures of all.
        built: those of the last whole build, which had so many ``partitions``; zeros if they are not known.
        target: bytes of a file in a new build.
        spec: how a new build would be laid out.
    """
    files = _files_after(rows, now, target, spec)
    return Overlap(now, built.bytes, sum(files), expected(built, partitions, files, list(now.point_query_files)))


def expected(built: Summary, partitions: int, files: Sequence[int], columns: Sequence[str]) -> dict[str, float]:
    """Return by column how many files an equality query will read of a table that is built anew.

    Args:
        built: the figures of its last whole build, which had so many ``partitions``.
        files: how many files each partition will have.
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
    """Return how many files a build would make of each partition."""
    if now.rows == 0:
        return [1]
    if spec.files is not None:
        return [max(1, min(spec.files, count)) for count in rows]
    return [files_for(count, now.bytes / now.rows, target) for count in rows]
