"""From a query to the layout of its output: counted, sampled, and a forest of cuts grown over it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.columns import case_sensitive, resolve, resolve_all
from dbt_zorder.curve.forest import Forest, grow
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.sample import Sample, draw, wanted_rows
from dbt_zorder.layout.sizing import auto_size, files_for, parse_size, probe_row_bytes, widest_row

MOST_COLUMNS = 8
_ORDER_LEVELS = 7
_MOST_CELLS = 1 << 14
"""Cells of the last level in all: they are literals in the plan, and growing them takes time on the driver."""


@dataclass(frozen=True)
class LayoutSpec:
    """What a user asked for.

    Attributes:
        by: columns to cluster by, as the user wrote them, 1 to 8.
        files: exact number of files (a partition), instead of a size.
        file_size: ``auto``, bytes, or a text like ``64MB``; counts only without ``files``.
        partition_by: the table's partition columns.
        weights: one a column, default equal.
        seed: of the sample.
        row_bytes: bytes that a row takes on disk, where that is known from an earlier version.
    """

    by: Sequence[str]
    files: int | None = None
    file_size: str | int = "auto"
    partition_by: Sequence[str] = ()
    weights: Sequence[float] | None = None
    seed: int = 0
    row_bytes: float | None = None


@dataclass(frozen=True)
class Layout:
    """Where every row goes.

    Attributes:
        keys: the keys of the clustering columns.
        forest: cuts in ranks of ``sample``.
        sample: what the cuts' values are read from.
        partition_columns: SQL names of the partition columns.
        partition_hashes: sorted 64-bit hashes of the partitions; a partition's number is its place there.
        rows: exact number of rows counted.
        seconds: what planning took.
    """

    keys: Sequence[Key]
    forest: Forest
    sample: Sample
    partition_columns: Sequence[str]
    partition_hashes: npt.NDArray[np.int64]
    rows: int
    seconds: float = field(compare=False)

    @property
    def partition_hash(self) -> str:
        """SQL text of the hash of a row's partition."""
        return _partition_hash(self.partition_columns)


def keys_for(df: DataFrame, spec: LayoutSpec) -> list[Key]:
    """Resolve and check the columns of a spec against a query: reads no data.

    Raises:
        ColumnError: unknown (the nearest is named), ambiguous, named twice, or of a type without order.
        ConfigError: none or too many columns, or a partition column among them.
    """
    if not 1 <= len(spec.by) <= MOST_COLUMNS:
        msg = f"Between 1 and {MOST_COLUMNS} columns can be clustered by; given were {len(spec.by)}."
        raise ConfigError(msg)
    sensitive = case_sensitive(df.sparkSession)
    columns = resolve_all(spec.by, df.schema, sensitive=sensitive)
    partitions = [resolve(name, df.schema, sensitive=sensitive).name for name in spec.partition_by]
    for column in columns:
        if column.name in partitions:
            msg = f"The column '{column.name}' is a partition column: its files hold one value each, so leave it out."
            raise ConfigError(msg)
    return [key_of(column) for column in columns]


def plan_layout(df: DataFrame, spec: LayoutSpec) -> Layout:
    """Count and sample a query, and grow the forest that cuts its output into files.

    The query runs twice here: once to count rows (metadata only, for a plain scan of Parquet) and once for the sample,
    which reads the key columns alone.

    Raises:
        ColumnError, ConfigError: as ``keys_for``.
    """
    started = time.monotonic()
    keys = keys_for(df, spec)
    sensitive = case_sensitive(df.sparkSession)
    partition_columns = [resolve(name, df.schema, sensitive=sensitive).sql for name in spec.partition_by]
    partition_hash = _partition_hash(partition_columns) if partition_columns else None
    hashes, counts = _count(df, partition_hash)
    rows = int(counts.sum())
    files = _files(df, spec, keys, counts)
    sample = draw(df, keys, wanted_rows(sum(files), keys), rows, spec.seed, partition_hash, hashes)
    levels = min(_ORDER_LEVELS, max(0, (_MOST_CELLS // max(1, sum(files))).bit_length() - 1))
    forest = grow(sample.ranks, sample.partitions, files, levels, spec.weights)
    return Layout(keys, forest, sample, partition_columns, hashes, rows, time.monotonic() - started)


def _partition_hash(columns: Sequence[str]) -> str:
    return f"xxhash64({', '.join(columns)})"


def _count(df: DataFrame, partition_hash: str | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if partition_hash is None:
        return np.zeros(1, dtype=np.int64), np.asarray([df.count()], dtype=np.int64)
    found = df.groupBy(f.expr(partition_hash).alias("p")).count().collect()
    pairs = sorted((int(row[0]), int(row[1])) for row in found) or [(0, 0)]
    return np.asarray([pair[0] for pair in pairs]), np.asarray([pair[1] for pair in pairs])


def _files(df: DataFrame, spec: LayoutSpec, keys: Sequence[Key], counts: npt.NDArray[np.int64]) -> list[int]:
    """Return the number of files of every partition, never more than it has rows."""
    if spec.files is not None:
        return [max(1, min(spec.files, int(count))) for count in counts]
    rows = int(counts.sum())
    target = parse_size(spec.file_size)
    row_bytes = spec.row_bytes or widest_row(df.schema)
    if spec.row_bytes is None and int(counts.max()) * row_bytes >= (target or auto_size(0)):
        row_bytes = probe_row_bytes(df, [key.column.sql for key in keys])
    target = target or auto_size(rows * row_bytes)
    return [max(1, min(files_for(int(count), row_bytes, target), int(count))) for count in counts]
