"""From a query to the layout of its output: counted, sampled, and a forest of cuts grown over it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.columns import case_sensitive, resolve, resolve_all
from dbt_zorder.curve.forest import Forest, grow
from dbt_zorder.curve.grid import Grid, fit_grid
from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.bundles import bundles
from dbt_zorder.layout.curve_plan import check_curve, curve_of, lay_out, sampled_here, sampled_keys
from dbt_zorder.layout.decisions import boundaries_allowed
from dbt_zorder.layout.fetched import DrawnKeys, FetchedKeys, Known, count_of
from dbt_zorder.layout.hashing import partition_hash
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.layout import Layout, OrderGrid
from dbt_zorder.layout.linear import order_sql
from dbt_zorder.layout.pages import order_levels, page_rows_of
from dbt_zorder.layout.runs import runs_of
from dbt_zorder.layout.sample import Sample, draw, fetch_keys, rows_wanted_of, wanted_rows
from dbt_zorder.layout.sizing import (
    SPLIT_ABOVE,
    auto_size,
    files_for,
    guessed_row,
    numbers_row,
    parse_size,
    probe_row_bytes,
    widest_row,
)
from dbt_zorder.layout.small import greatest_bytes

MOST_COLUMNS = 8
MOST_FILES = 1_000_000
"""Of one layout: as many as a petabyte takes of 1 GB. Beyond, a driver runs out of memory without a word."""
_MOST_COUNT = (1 << 31) - 1
_SEEDS = 1 << 63
_ROWS_FOR_THE_BEST = 1_000_000
"""Of fewer rows, further trees of a skewed table take longer than their files spare."""


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
        curve: ``zorder``, ``hilbert`` or ``linear``.
        encoding: ``rank`` or ``bits``: of the values that a curve runs over.
        page_rows: rows of a Parquet page at most, as the writer is told; None is what the session says.
        compression: codec, as the writer is told; None is what the session says.
    """

    by: Sequence[str]
    files: int | None = None
    file_size: str | int = "auto"
    partition_by: Sequence[str] = ()
    weights: Sequence[float] | None = None
    seed: int = 0
    row_bytes: float | None = None
    curve: str = "zorder"
    encoding: str = "rank"
    page_rows: int | None = None
    compression: str | None = None


@dataclass(frozen=True)
class Plan:
    """A layout, and what it was made from.

    Attributes:
        layout: where every row goes.
        forest: the same as cuts in ranks of ``sample``.
        sample: the sampled rows.
        grid: what orders rows inside files, in ranks of ``sample``, where that is not the forest.
    """

    layout: Layout
    forest: Forest
    sample: Sample
    grid: Grid | None = None


def keys_for(df: DataFrame, spec: LayoutSpec) -> list[Key]:
    """Resolve and check the columns of a spec against a query: reads no data.

    Raises:
        ColumnError: no text, unknown (the nearest is named), ambiguous, named twice, or of a type without order.
        ConfigError: none or too many columns, a partition column among them, a number out of range, or no such curve
            or encoding.
    """
    _check_numbers(spec)
    if not 1 <= len(spec.by) <= MOST_COLUMNS:
        msg = f"Between 1 and {MOST_COLUMNS} columns can be clustered by; given were {len(spec.by)}."
        raise ConfigError(msg)
    for name in (*spec.by, *spec.partition_by):
        if not isinstance(name, str):
            msg = f"A column is named by a text, like 'customer_id'; given was {name!r}."
            raise ColumnError(msg)
    check_curve(spec.curve, spec.encoding, weighted=spec.weights is not None, columns=len(spec.by))
    sensitive = case_sensitive(df.sparkSession)
    columns = resolve_all(spec.by, df.schema, sensitive=sensitive)
    partitions = [resolve(name, df.schema, sensitive=sensitive).name for name in spec.partition_by]
    for column in columns:
        if column.name in partitions:
            msg = f"The column '{column.name}' is a partition column: its files hold one value each, so leave it out."
            raise ConfigError(msg)
    keys = [key_of(column) for column in columns]
    for number, key in enumerate(keys):
        for other in keys[:number]:
            if key.expression == other.expression:
                msg = f"'{other.column.name}' and '{key.column.name}' are ordered by the same values: leave out one."
                raise ColumnError(msg)
    return keys


def is_count(value: object) -> bool:
    """Tell whether a value is a whole number, 1 or more."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0


def are_weights(value: object, columns: int) -> bool:
    """Tell whether a value is a list of positive numbers, one a column."""
    return (
        isinstance(value, (list, tuple))
        and len(value) == columns
        # a whole number may be larger than any float
        and all(isinstance(w, (int, float)) and not isinstance(w, bool) and 0 < w <= sys.float_info.max for w in value)
    )


def _check_numbers(spec: LayoutSpec) -> None:
    for name, value in (("files", spec.files), ("page_rows", spec.page_rows)):
        if value is not None and not (is_count(value) and value <= _MOST_COUNT):
            msg = f"'{name}' must be a positive whole number, up to {_MOST_COUNT:,}; given was {value!r}."
            raise ConfigError(msg)
    if not isinstance(spec.seed, Integral) or not -_SEEDS <= int(spec.seed) < _SEEDS:
        msg = f"'seed' must be a whole number of 64 bits; given was {spec.seed!r}."
        raise ConfigError(msg)
    parse_size(spec.file_size)
    if spec.weights is not None and not are_weights(spec.weights, len(spec.by)):
        msg = f"'weights' must be {len(spec.by)} positive numbers, one a column; given was {spec.weights!r}."
        raise ConfigError(msg)


def plan_layout(df: DataFrame, spec: LayoutSpec, known: Known = None) -> Layout:
    """Count and sample a query, and lay out its output; see ``make_plan``."""
    return make_plan(df, spec, known).layout


def make_plan(df: DataFrame, spec: LayoutSpec, known: Known = None) -> Plan:
    """Count and sample a query, and grow the forest that cuts its output into files.

    Where nothing is known, the query runs twice: once to count rows (metadata only, for a plain scan of Parquet) and
    once for the sample, which reads the key columns alone; where they are few, once for both. Besides, its first rows
    are read where nothing else tells how large a row is, or how long the text of the keys.

    Args:
        df: the query.
        spec: what was asked for.
        known: of the query: what its rows, or as many as are asked for, are placed by, where they are placed in this
            process; or how many they are.

    Raises:
        ColumnError, ConfigError: as ``keys_for``.
    """
    keys = keys_for(df, spec)
    sensitive = case_sensitive(df.sparkSession)
    partition_columns = [resolve(name, df.schema, sensitive=sensitive).sql for name in spec.partition_by]
    hashed = partition_hash(partition_columns) if partition_columns else None
    curve = curve_of(spec.curve, spec.encoding, len(keys))
    sampled = sampled_keys(curve, keys)
    if isinstance(known, FetchedKeys):
        fetched: pa.Table | None = sampled_here(curve, keys, known)
    else:
        fetched = None if isinstance(known, DrawnKeys) else fetch_keys(df, sampled, hashed)
    hashes, counts = _count(df, hashed, fetched, count_of(known))
    rows = int(counts.sum())
    files, row_bytes = _files(df, spec, keys, counts)
    tasks = bundles(files, counts, row_bytes) if partition_columns else None
    # a curve's own key orders rows inside a file, and needs no cells
    page_rows = page_rows_of(df.sparkSession, spec.page_rows)
    levels = 0 if curve is not None else order_levels(rows, sum(files), page_rows)
    cells = sum(files) << levels
    if isinstance(known, DrawnKeys):
        wanted = wanted_rows(sum(files), keys, cells, known.text_bytes)
    elif fetched is not None:
        wanted = wanted_rows(sum(files), keys, cells)  # what is here already weighs no more by being long
    else:
        wanted = rows_wanted_of(df, keys, sum(files), cells)
    if isinstance(known, DrawnKeys) and hashed is None:
        fetched = sampled_here(curve, keys, known.draw(wanted, spec.seed))
    sample = draw(df, sampled, wanted, rows, spec.seed, hashed, hashes, fetched)
    if curve is not None:
        forest, layout = lay_out(curve, sample, keys, files, spec.weights, partition_columns, hashes, rows)
        return Plan(replace(layout, task_of_file=tasks), forest, sample)
    best = rows >= _ROWS_FOR_THE_BEST
    forest = grow(sample.ranks, sample.partitions, files, levels, spec.weights, best=best)
    layout = Layout.of(forest, sample, keys, partition_columns, hashes, rows)
    runs = runs_of(forest, sample, keys, rows)
    grid = None
    if not isinstance(known, (FetchedKeys, DrawnKeys)):  # rows that are placed here go down the tree itself
        grid = fit_grid(forest, sample.ranks, rows / forest.files / page_rows, boundaries_allowed(df, layout))
    order = OrderGrid.of(grid, sample, keys) if grid is not None else None
    return Plan(replace(layout, task_of_file=tasks, grid=order, runs=runs), forest, sample, grid)


def _count(
    df: DataFrame, hashed: str | None, fetched: pa.Table | None, rows: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if fetched is not None and fetched.num_rows and hashed is not None:
        return np.unique(fetched["p"].to_numpy(), return_counts=True)
    if fetched is not None or hashed is None:
        if rows is None:
            rows = df.count() if fetched is None else fetched.num_rows
        return np.zeros(1, dtype=np.int64), np.asarray([rows], dtype=np.int64)
    # each is a file at least: more than there may be need not come to the driver
    found = df.groupBy(f.expr(hashed).alias("p")).count().limit(MOST_FILES + 1).collect()
    pairs = sorted((int(row[0]), int(row[1])) for row in found) or [(0, 0)]
    return np.asarray([pair[0] for pair in pairs]), np.asarray([pair[1] for pair in pairs])


def _files(
    df: DataFrame, spec: LayoutSpec, keys: Sequence[Key], counts: npt.NDArray[np.int64]
) -> tuple[list[int], float]:
    """Return the number of files of every partition, never more than it has rows, and the bytes of a row.

    Raises:
        ConfigError: they are too many.
    """
    files, row_bytes = _wanted_files(df, spec, keys, counts)
    if sum(files) > MOST_FILES:
        asked = f"zorder_files={spec.files}" if spec.files is not None else f"a file size of {spec.file_size!r}"
        msg = f"The table would have {sum(files):,} files by {asked}, and {MOST_FILES:,} is the most: ask for fewer."
        raise ConfigError(msg)
    return files, row_bytes


def _wanted_files(
    df: DataFrame, spec: LayoutSpec, keys: Sequence[Key], counts: npt.NDArray[np.int64]
) -> tuple[list[int], float]:
    if spec.files is not None:
        return [max(1, min(spec.files, int(count))) for count in counts], guessed_row(df.schema)
    rows = int(counts.sum())
    target = parse_size(spec.file_size)
    row_bytes = spec.row_bytes or guessed_row(df.schema)
    most, least_target = max(1, int(counts.max())), target or auto_size(0)
    if spec.row_bytes is None and most * widest_row(df.schema) >= least_target:
        one_file = SPLIT_ABOVE * least_target
        greatest = greatest_bytes(df) if target is None else None
        # numbers that another writer packed more closely than Spark does tell too little
        if greatest is not None and rows * numbers_row(df.schema) / 2 <= greatest < one_file:
            row_bytes = min(row_bytes, greatest / max(1, rows))
        else:
            row_bytes = probe_row_bytes(df, order_sql(keys), one_file / most, spec.compression)
    target = target or auto_size(rows * row_bytes)
    return [max(1, min(files_for(int(count), row_bytes, target), int(count))) for count in counts], row_bytes
