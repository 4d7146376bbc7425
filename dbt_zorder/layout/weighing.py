"""A layout whose files have equal shares of the bytes: rows are longer in some files than in others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.forest import descend
from dbt_zorder.layout.plan import Plan, check_most, grown
from dbt_zorder.layout.sizing import auto_size, files_for, parse_size


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


def resized(plan: Plan, row_bytes: float) -> Plan:
    """Return a plan over the same sample, by the bytes that a row takes."""
    drawn = plan.drawn
    return _grown(plan, drawn.counts * row_bytes)


def files_at(plan: Plan, row_bytes: float) -> int:
    """Return the number of files that ``resized`` gives."""
    return sum(_files(plan, plan.drawn.counts * row_bytes))


def weighed(plan: Plan, row_bytes: npt.NDArray[np.float64]) -> Plan:
    """Return a plan over the same sample whose files have equal shares of a partition's bytes, not of its rows.

    Args:
        plan: whose spec asks for a size.
        row_bytes: shape (files,): that a row takes in each file of the plan.
    """
    drawn, parts = plan.drawn, plan.sample.partitions
    weights = row_bytes[files_of_sample(plan)]
    sampled = np.bincount(parts, minlength=len(drawn.counts))
    total = np.bincount(parts, weights=weights, minlength=len(drawn.counts))
    # a partition without any sampled row is one file
    of_first = row_bytes[plan.forest.first_file[:: 1 << plan.forest.file_levels]]
    mean = np.where(sampled > 0, total / np.maximum(1, sampled), of_first)
    return _grown(plan, drawn.counts * mean, _by_weight(parts, weights))


def _by_weight(parts: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return numbers of as many rows as there are, each about as often as its weight says, partition by partition."""
    order = np.argsort(parts, kind="stable")
    ends = np.cumsum(weights[order])
    upto = np.floor(ends * (len(order) / ends[-1]) + 0.5) if len(order) else ends
    return np.repeat(order, np.diff(upto, prepend=0).astype(np.int64))


def _grown(plan: Plan, sizes: npt.NDArray[Any], counted: npt.NDArray[np.int64] | None = None) -> Plan:
    files = _files(plan, sizes)
    check_most(files, plan.drawn.spec)
    return grown(plan.drawn, files, sizes, counted)


def _files(plan: Plan, sizes: npt.NDArray[Any]) -> list[int]:
    target = parse_size(plan.drawn.spec.file_size) or auto_size(float(sizes.sum()))
    counts = plan.drawn.counts.tolist()
    return [
        max(1, min(files_for(count, size / max(1, count), target), count))
        for count, size in zip(counts, sizes.tolist(), strict=True)
    ]
