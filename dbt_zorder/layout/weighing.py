"""A layout whose files have equal shares of the bytes: rows are longer in some files than in others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.curve.tree import descend
from dbt_zorder.engine.local.fetched_keys import FetchedKeys
from dbt_zorder.layout.curves import sampled_here
from dbt_zorder.layout.file_count import auto_size, files_of_parts, parse_size
from dbt_zorder.layout.lengths import means
from dbt_zorder.layout.plan import Plan, check_most, grown
from dbt_zorder.layout.sample import draw

_LARGE = 4
"""Files of less than such a part of the largest, partitions of their own, may be of any size below it."""


def files_of_sample(plan: Plan) -> npt.NDArray[np.int64]:
    """Return the file of each sampled row: the first of those that a hash shares a cell out to."""
    forest, sample = plan.forest, plan.sample
    to_files = replace(forest, cuts=forest.cuts[: forest.file_levels])
    cells = descend(to_files, sample.ranks if plan.along is None else plan.along, sample.partitions)
    return np.minimum(forest.first_file[cells], forest.files - 1).astype(np.int64)


def rows_by_file(plan: Plan) -> npt.NDArray[np.float64]:
    """Return how many rows each file has, if those of a partition have equally many."""
    files = plan.layout.files_of_trees
    return np.repeat(plan.drawn.counts / np.maximum(1, files), files)


def telling_files(plan: Plan, lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which files are as large as those that are asked for, and not just what little a partition has."""
    files = plan.layout.files_of_trees
    of_trees = np.bincount(np.repeat(np.arange(len(files)), files), weights=lengths) / files
    size = rows_by_file(plan) * np.repeat(of_trees, files)
    return np.asarray(np.repeat(files > 1, files) | (size >= size.max() / _LARGE))


def resized(plan: Plan, row_bytes: float) -> Plan:
    """Return a plan over the same sample, by the bytes that a row takes."""
    return _grown(plan, row_bytes)


def files_at(plan: Plan, row_bytes: float) -> int:
    """Return the number of files that ``resized`` gives."""
    return sum(_files(plan, row_bytes))


def redrawn(plan: Plan, row_bytes: float, drawn: FetchedKeys | pa.Table) -> Plan:
    """Return what ``resized`` does, over another sample.

    Args:
        plan: of the query.
        row_bytes: that a row takes.
        drawn: what its rows are placed by, or the same as ``drawn_keys`` gives it.
    """
    known = plan.drawn
    table = sampled_here(known.curve, known.keys, drawn) if isinstance(drawn, FetchedKeys) else drawn
    rows, seed = table.num_rows, known.spec.seed
    sample = draw(known.df, known.sampled, rows, known.rows, seed, known.partition_hash, known.hashes, table)
    return resized(replace(plan, drawn=replace(known, sample=sample)), row_bytes)


def weighed(plan: Plan, weights: npt.NDArray[np.float64]) -> Plan:
    """Return a plan over the same sample whose files have equal shares of a partition's bytes, not of its rows.

    Args:
        plan: whose spec asks for a size.
        weights: shape (sampled rows,): bytes that each takes, in the mean of those that it stands for.
    """
    parts = plan.sample.partitions
    # a partition without any sampled row is so small that it is one file, whatever its rows take
    row_bytes = means(parts, weights, len(plan.drawn.counts), float(weights.mean()))
    return _grown(plan, row_bytes, _by_weight(parts, weights))


def _by_weight(parts: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return numbers of as many rows as there are, each about as often as its weight says, partition by partition."""
    order = np.argsort(parts, kind="stable")
    ends = np.cumsum(weights[order])
    upto = np.floor(ends * (len(order) / ends[-1]) + 0.5) if len(order) else ends
    return np.repeat(order, np.diff(upto, prepend=0).astype(np.int64))


def _grown(plan: Plan, row_bytes: npt.ArrayLike, counted: npt.NDArray[np.int64] | None = None) -> Plan:
    drawn, files = plan.drawn, _files(plan, row_bytes)
    check_most(files, drawn.spec)
    return grown(drawn, files, drawn.counts * np.asarray(row_bytes), counted)


def _files(plan: Plan, row_bytes: npt.ArrayLike) -> list[int]:
    counts = plan.drawn.counts
    target = parse_size(plan.drawn.spec.file_size) or auto_size(float((counts * np.asarray(row_bytes)).sum()))
    return files_of_parts(counts, row_bytes, target)
