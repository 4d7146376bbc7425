"""The plan of a query's output: row counts, a sample, and a forest of cuts grown over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.curve.tree import Forest, grow
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.curve import Curve
from dbt_zorder.layout.curves import curve_of, lay_out, sampled_keys, sampled_values
from dbt_zorder.layout.file_count import (
    SPLIT_ABOVE,
    auto_size,
    files_of_parts,
    guessed_row_bytes,
    parse_size,
    plain_row_bytes,
    probe_row_bytes,
    widest_row_bytes,
)
from dbt_zorder.layout.keys import Key, order_sql
from dbt_zorder.layout.known_keys import DrawnKeys, FetchedKeys, KnownKeys, count_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.page_order import order_levels, page_rows_of
from dbt_zorder.layout.partitions import partition_hash
from dbt_zorder.layout.runs import runs_of
from dbt_zorder.layout.sample import Sample, draw, fetch_keys, rows_wanted_of, wanted_rows
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.columns import case_sensitive, resolve
from dbt_zorder.spark.small_queries import greatest_bytes

MOST_FILES = 1_000_000
"""Limit on the files of one layout: those of a petabyte in files of 1 GB.

With more files, a driver runs out of memory without a message.
"""


@dataclass(frozen=True)
class Drawn:
    """Counts and sample of a query, over which trees are grown.

    Attributes:
        df: the query.
        spec: the user's request.
        keys: keys of the clustering columns.
        partition_columns: SQL names of the partition columns.
        hashes: sorted 64-bit hashes of the partitions.
        counts: number of rows of each partition.
        sample: the sampled rows.
    """

    df: DataFrame
    spec: LayoutSpec
    keys: Sequence[Key]
    partition_columns: Sequence[str]
    hashes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    sample: Sample

    @property
    def rows(self) -> int:
        """Exact number of rows."""
        return int(self.counts.sum())

    @property
    def curve(self) -> Curve | None:
        """Curve of the request, see ``curve_of``."""
        return curve_of(self.spec.curve, self.spec.encoding, len(self.keys))

    @property
    def sampled(self) -> Sequence[Key]:
        """Keys that are sampled."""
        return sampled_keys(self.curve, self.keys)

    @property
    def partition_hash(self) -> str | None:
        """SQL text of the hash of a row's partition, None if there are no partitions."""
        return partition_hash(self.partition_columns) if self.partition_columns else None


@dataclass(frozen=True)
class Plan:
    """A layout with the data that it was made from.

    Attributes:
        layout: destination of every row.
        forest: the same cuts as ranks of the sample, or along a curve that cuts files.
        drawn: counts and sample over which the forest was grown.
        row_bytes: approximate bytes of a row.
    """

    layout: Layout
    forest: Forest
    drawn: Drawn
    row_bytes: float

    @property
    def sample(self) -> Sample:
        """The sampled rows."""
        return self.drawn.sample


def plan_layout(df: DataFrame, spec: LayoutSpec, known_keys: KnownKeys = None) -> Layout:
    """Count and sample a query, and lay out its output; see ``make_plan``."""
    return make_plan(df, spec, known_keys).layout


def make_plan(df: DataFrame, spec: LayoutSpec, known_keys: KnownKeys = None) -> Plan:
    """Count and sample a query, and grow the forest that cuts its output into files.

    Without keys or a row count, the query runs twice. The first run counts rows, from metadata alone for a plain scan
    of Parquet. The second run reads the key columns for the sample. If the keys are few, one run serves both purposes.
    The first rows are also read if nothing else gives the size of a row or the length of text keys.

    Args:
        df: the query.
        spec: the user's request.
        known_keys: keys of the query's rows, if rows are placed in this process; or the number of its rows; else None.

    Raises:
        ColumnError, ConfigError: as for ``keys_for``.
    """
    keys = keys_for(df, spec)
    partition_columns = _partition_columns(df, spec)
    hashed = partition_hash(partition_columns) if partition_columns else None
    curve = curve_of(spec.curve, spec.encoding, len(keys))
    sampled = sampled_keys(curve, keys)
    if isinstance(known_keys, FetchedKeys):
        fetched: pa.Table | None = sampled_values(curve, keys, known_keys)
    else:
        fetched = None if isinstance(known_keys, DrawnKeys) else fetch_keys(df, sampled, hashed)
    hashes, counts = _count(df, hashed, fetched, count_of(known_keys))
    rows = int(counts.sum())
    files, row_bytes = _files(df, spec, keys, counts)
    levels = _order_levels(df, spec, curve, rows, sum(files))
    cells = sum(files) << levels
    if isinstance(known_keys, DrawnKeys):
        wanted = wanted_rows(sum(files), keys, cells, known_keys.text_bytes)
    elif fetched is not None:
        wanted = wanted_rows(sum(files), keys, cells)  # the keys are in memory already, so their length does not matter
    else:
        wanted = rows_wanted_of(df, keys, sum(files), cells)
    if isinstance(known_keys, DrawnKeys) and hashed is None:
        fetched = sampled_values(curve, keys, known_keys.draw(wanted, spec.seed))
    sample = draw(df, sampled, wanted, rows, spec.seed, hashed, hashes, fetched)
    drawn = Drawn(df, spec, keys, partition_columns, hashes, counts, sample)
    return _grow(drawn, files, row_bytes)


def count_files(df: DataFrame, spec: LayoutSpec) -> list[int]:
    """Count the rows of a query, and return the number of files that a layout would make of each partition.

    Raises:
        ColumnError, ConfigError: as for ``keys_for``; or there are too many files.
    """
    keys, columns = keys_for(df, spec), _partition_columns(df, spec)
    _, counts = _count(df, partition_hash(columns) if columns else None, None, None)
    return _files(df, spec, keys, counts)[0]


def resize_plan(plan: Plan, row_bytes: float) -> Plan:
    """Return a plan over the same sample, for a new size of a row in bytes.

    Raises:
        ConfigError: there are too many files.
    """
    drawn = plan.drawn
    counts, spec = drawn.counts, drawn.spec
    target = parse_size(spec.file_size) or auto_size(drawn.rows * row_bytes)
    files = files_of_parts(counts, row_bytes, target)
    _check_file_limit(files, spec)
    return _grow(drawn, files, row_bytes)


def _partition_columns(df: DataFrame, spec: LayoutSpec) -> list[str]:
    """Return SQL names of the partition columns."""
    sensitive = case_sensitive(df.sparkSession)
    return [resolve(name, df.schema, sensitive=sensitive).sql for name in spec.partition_by]


def _grow(drawn: Drawn, files: Sequence[int], row_bytes: float) -> Plan:
    """Grow the forest that cuts a query's output into files.

    Args:
        drawn: sample and counts of the query.
        files: number of files of each partition.
        row_bytes: approximate bytes of a row.
    """
    df, spec, keys, sample, rows = drawn.df, drawn.spec, drawn.keys, drawn.sample, drawn.rows
    curve = drawn.curve
    if curve is not None:
        columns, hashes = drawn.partition_columns, drawn.hashes
        forest, layout = lay_out(curve, sample, keys, files, spec.weights, columns, hashes, rows)
        return Plan(layout, forest, drawn, row_bytes)
    levels = _order_levels(df, spec, curve, rows, sum(files))
    forest = grow(sample.ranks, sample.partitions, files, levels, spec.weights)
    layout = Layout.of(forest, sample, keys, drawn.partition_columns, drawn.hashes, rows)
    return Plan(replace(layout, runs=runs_of(forest, sample, keys, rows)), forest, drawn, row_bytes)


def _order_levels(df: DataFrame, spec: LayoutSpec, curve: Curve | None, rows: int, files: int) -> int:
    """Return the number of levels below the file; 0 with a curve, whose own key orders the rows."""
    return 0 if curve is not None else order_levels(rows, files, page_rows_of(df.sparkSession, spec.page_rows))


def _count(
    df: DataFrame, hashed: str | None, fetched: pa.Table | None, rows: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if fetched is not None and fetched.num_rows and hashed is not None:
        return np.unique(fetched["p"].to_numpy(), return_counts=True)
    if fetched is not None or hashed is None:
        if rows is None:
            rows = df.count() if fetched is None else fetched.num_rows
        return np.zeros(1, dtype=np.int64), np.asarray([rows], dtype=np.int64)
    # each partition has at least one file, so the driver needs no more partitions than the limit of files
    found = df.groupBy(f.expr(hashed).alias("p")).count().limit(MOST_FILES + 1).collect()
    pairs = sorted((int(row[0]), int(row[1])) for row in found) or [(0, 0)]
    return np.asarray([pair[0] for pair in pairs]), np.asarray([pair[1] for pair in pairs])


def _files(
    df: DataFrame, spec: LayoutSpec, keys: Sequence[Key], counts: npt.NDArray[np.int64]
) -> tuple[list[int], float]:
    """Return the number of files of every partition, at most its number of rows, and the bytes of a row.

    Raises:
        ConfigError: there are too many files.
    """
    files, row_bytes = _wanted_files(df, spec, keys, counts)
    _check_file_limit(files, spec)
    return files, row_bytes


def _check_file_limit(files: Sequence[int], spec: LayoutSpec) -> None:
    """Check that the number of files is within the limit.

    Raises:
        ConfigError: there are too many files.
    """
    if sum(files) > MOST_FILES:
        asked = f"zorder_files={spec.files}" if spec.files is not None else f"a file size of {spec.file_size!r}"
        msg = f"The table would have {sum(files):,} files by {asked}, and {MOST_FILES:,} is the most: ask for fewer."
        raise ConfigError(msg)


def _wanted_files(
    df: DataFrame, spec: LayoutSpec, keys: Sequence[Key], counts: npt.NDArray[np.int64]
) -> tuple[list[int], float]:
    if spec.files is not None:
        return [max(1, min(spec.files, int(count))) for count in counts], guessed_row_bytes(df.schema)
    rows = int(counts.sum())
    target = parse_size(spec.file_size)
    row_bytes = spec.row_bytes or guessed_row_bytes(df.schema)
    most, least_target = max(1, int(counts.max())), target or auto_size(0)
    if spec.row_bytes is None and most * widest_row_bytes(df.schema) >= least_target:
        one_file = SPLIT_ABOVE * least_target
        greatest = greatest_bytes(df) if target is None else None
        # a size far below that of the plain numbers comes from a writer that packs them closer than Spark
        if greatest is not None and rows * plain_row_bytes(df.schema) / 2 <= greatest < one_file:
            row_bytes = min(row_bytes, greatest / max(1, rows))
        else:
            row_bytes = probe_row_bytes(df, order_sql(keys), one_file / most, spec.compression)
    target = target or auto_size(rows * row_bytes)
    return files_of_parts(counts, row_bytes, target), row_bytes
