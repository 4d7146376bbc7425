"""Choose the layouts that are worth predicting: sets of 1 to 4 columns, their weights, and a partition column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from dbt_zorder.advice.simulation import (
    Candidate,
    Prediction,
    Read,
    SampledTable,
    files_of_trees,
    lay_out,
    predict,
    trees_of,
)

MOST_COLUMNS = 4
"""Limit on the columns of a candidate: with each further one, every other is cut less often."""

_MOST_USED = 8
"""Limit on the columns that are tried: those that most scans filter."""

_KEPT = 3
"""Number of sets of one size to which a column is added; below ``_ALL_SETS`` columns, every set is tried."""

_ALL_SETS = 5
_WEIGHTS = (1, 2, 4)
WORTH_A_COLUMN = 0.05
"""Least share of the bytes read that a further column or unequal weights must save."""


_WORTH_STATISTICS = 0.01
"""Least share of the bytes read that statistics of a further column must save."""


def used_columns(reads: Sequence[Read]) -> list[str]:
    """Return the columns that scans filter, the most used first."""
    use: dict[str, float] = {}
    for read in reads:
        for name in read.columns:
            use[name] = use.get(name, 0.0) + read.weight
    return sorted(use, key=lambda name: (-use[name], name))


def predict_candidates(table: SampledTable, reads: Sequence[Read]) -> list[Prediction]:
    """Return predictions of candidates, best first; the table exactly as it is now is not among them."""
    columns = [name for name in used_columns(reads) if name in table.columns and name not in table.partition_by]
    found = list(_sets(table, reads, columns[:_MOST_USED]))
    several = [one for one in found if one.candidate.columns > 1]
    if several:
        found += [_with_stats(table, candidate, reads) for candidate in _weighted(best_of(several).candidate.by)]
    partition = partition_column(table, reads)
    if partition is not None:
        found.append(predict(table, Candidate(partition_by=(partition,)), reads))
    unmoved = _with_stats(table, Candidate(), reads)
    if unmoved.candidate.stats:
        found.append(unmoved)
    return sorted(found, key=lambda one: (one.share, one.candidate.columns, one.candidate.weights is not None))


def best_of(predictions: Iterable[Prediction]) -> Prediction:
    """Return the simplest of the predictions that read almost as few bytes as the best."""
    found = list(predictions)
    limit = min(one.share for one in found) / (1 - WORTH_A_COLUMN)
    near = [one for one in found if one.share <= limit]
    return min(near, key=lambda one: (_complexity(one.candidate), one.share))


def _complexity(candidate: Candidate) -> tuple[int, bool, bool, int]:
    """Return what orders candidates by simplicity. Every reader skips partitions, even without statistics."""
    return candidate.columns, not candidate.partition_by, candidate.weights is not None, len(candidate.stats)


def _with_stats(table: SampledTable, candidate: Candidate, reads: Sequence[Read]) -> Prediction:
    """Predict a candidate with statistics of further columns, as far as they leave out files."""
    covered = candidate.covered(table)
    names = tuple(name for name in used_columns(reads) if name in table.columns and name not in covered)
    boxes = lay_out(table, candidate)
    best = predict(table, replace(candidate, stats=names), reads, boxes)
    for name in reversed(names):
        stats = tuple(other for other in best.candidate.stats if other != name)
        fewer = predict(table, replace(candidate, stats=stats), reads, boxes)
        if fewer.share <= best.share * (1 + _WORTH_STATISTICS):
            best = fewer
    return best


def partition_column(table: SampledTable, reads: Sequence[Read]) -> str | None:
    """Return the column whose values could be partitions; None if there is none.

    Every filter must be an equality on it, and a partition must fill a file of the target size.
    """
    asked = [read for read in reads if read.test is not None]
    columns = {name for read in asked for name in read.columns}
    if table.partition_by or len(columns) != 1 or not all(read.equalities == columns for read in asked):
        return None
    column = next(iter(columns))
    return column if 1 < table.distinct(column) <= sum(files_of_trees(table, trees_of(table, ()))) else None


def _sets(table: SampledTable, reads: Sequence[Read], columns: Sequence[str]) -> Iterator[Prediction]:
    """Yield predictions of sets of columns: all of them if they are few, else extensions of the best ones."""
    sets: list[tuple[str, ...]] = [(name,) for name in columns]
    least = 1.0
    for size in range(1, MOST_COLUMNS + 1):
        found = [_with_stats(table, Candidate(by), reads) for by in sets]
        yield from found
        least, before = min((one.share for one in found), default=0.0), least
        if size > 2 and least > before * (1 - WORTH_A_COLUMN):
            return  # a column more did not pay, so a further one hardly will
        if size == 1 or len(columns) <= _ALL_SETS:
            sets = list(combinations(columns, size + 1))
            continue
        best = sorted(found, key=lambda one: one.share)[:_KEPT]
        wider = {frozenset((*one.candidate.by, name)) for one in best for name in columns}
        sets = sorted(tuple(name for name in columns if name in names) for names in wider if len(names) == size + 1)


def _weighted(by: Sequence[str]) -> Iterator[Candidate]:
    """Yield unequal weights of columns: all of them for two, else more for one or both of the most used."""
    for chosen in product(_WEIGHTS, repeat=min(2, len(by))):
        weights = (*chosen, *[1] * (len(by) - len(chosen)))
        if len(set(weights)) > 1 and min(weights) == 1:
            yield Candidate(tuple(by), weights)
