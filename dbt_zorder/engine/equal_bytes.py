"""Files of equal bytes where rows take more in some than in others: by lengths of rows, or by files that were seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt_zorder.engine.local.shuffle import Share
from dbt_zorder.engine.spark.pilot import Measuring
from dbt_zorder.layout.lengths import means
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.sample import ROWS_PER_FILE
from dbt_zorder.layout.weighing import files_of_sample, redrawn, telling_files, weighed

_LOG = logging.getLogger("dbt_zorder")

_MOST_MEASURED = 48
"""Files, to learn whether lengths tell what rows take."""
_MOST_CHECKED = 12
"""Files, to learn whether they are as lengths told."""
_MOST_OF_ALL = 500
"""Files, where they do not."""
_MOST_DRAWN = 2_000_000
"""Rows of a sample, where few rows are so long that they weigh as much as all others."""
_AS_TOLD = 1.15
"""How far what a file takes may be from what was told of it."""
_ROUNDS = 4
_SWEEPS = 20


def of_equal_bytes(plan: Plan, row_bytes: float, measuring: Measuring) -> Plan:
    """Return a plan whose files have equal shares of the bytes.

    Args:
        plan: of the query.
        row_bytes: that a row takes in the mean.
        measuring: tells what files take.
    """
    rows = len(plan.sample.ranks)
    keys, lengths = measuring.drawn(plan, rows)
    # files of long rows have few of the sampled ones: as many count as if all were alike
    telling = lengths.sum() ** 2 / max(1.0, float((lengths**2).sum()))
    if 0 < telling < (wanted := min(rows, ROWS_PER_FILE * plan.layout.files)):
        keys, lengths = measuring.drawn(plan, max(rows, min(_MOST_DRAWN, int(rows * wanted / telling))))
    plan, lengths = redrawn(plan, row_bytes, keys), np.maximum(lengths, 1.0)
    weights = np.full(len(lengths), row_bytes)
    told: list[tuple[float, float]] = []
    for number in range(_ROUNDS):
        files = files_of_sample(plan)
        of_file, expected = (_by_file(files, values, plan.layout.files) for values in (lengths, weights))
        taken = _taken(plan, files, measuring, of_file, _MOST_CHECKED if number else _MOST_MEASURED)
        if not any(_differ(size, expected[file]) for file, size in taken.items()):
            break
        told += [(of_file[file], size) for file, size in taken.items()]
        found = _by_length(lengths, *np.asarray(told).T)
        if found is None:
            return _by_files(plan, weights, measuring)
        weights = found
        plan = weighed(plan, weights)
        _LOG.debug("cut by bytes: a row takes %.1f to %.1f, by its length", weights.min(), weights.max())
    return plan


def _by_length(
    lengths: npt.NDArray[np.float64], of_file: npt.NDArray[np.float64], taken: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | None:
    """Return what each row takes, if that goes by its length alone: so much for any row, and for each byte of it.

    Args:
        lengths: of the rows.
        of_file: mean lengths of the rows of some files.
        taken: bytes that a row takes in each of these files.
    """
    shares = np.stack([1 / taken, of_file / taken], axis=1)
    (any_row, byte), *_ = np.linalg.lstsq(shares, np.ones(len(taken)), rcond=None)
    # numbers that encodings make small let a row of no text take less than nothing
    least = taken.min() / 2
    if byte <= 0 or _differ(np.maximum(any_row + byte * of_file, least), taken).any():
        return None
    return np.asarray(np.maximum(any_row + byte * lengths, least))


def _by_files(plan: Plan, weights: npt.NDArray[np.float64], measuring: Measuring) -> Plan:
    """Return a plan by what rows take in files, where no length tells it.

    A file of some rows that take much and others that take little tells of neither. Cut anew, these lie in files that
    have more of the ones or of the others, which are measured again. Rows are then taken for what agrees with all files
    that they have lain in, found by turns (iterative proportional fitting, Deming and Stephan 1940).

    Args:
        plan: of the query.
        weights: what each sampled row is taken for.
        measuring: tells what files take.
    """
    seen: list[_Seen] = []
    for _ in range(_ROUNDS):
        files = files_of_sample(plan)
        taken = _taken(plan, files, measuring, _by_file(files, weights, plan.layout.files), _MOST_OF_ALL)
        found = _Seen(files, plan.layout.files_of_trees, taken)
        if not taken or (seen and not _differ(found.ratios(weights)[list(taken)], 1.0).any()):
            break
        _LOG.debug("cut by bytes, by what %d of %d files take", len(taken), plan.layout.files)
        seen.append(found)
        for one in seen * _SWEEPS:
            weights = weights * one.ratios(weights)[one.files]
        plan = weighed(plan, weights)
    return plan


@dataclass(frozen=True)
class _Seen:
    """What rows took in files that they lay in.

    Attributes:
        files: of each sampled row.
        files_of_trees: number of files of each tree.
        taken: bytes that a row took, by file, in their order.
    """

    files: npt.NDArray[np.int64]
    files_of_trees: npt.NDArray[np.int64]
    taken: Mapping[int, float]

    def ratios(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return by file how much more a row takes than it is taken for; as its neighbours tell where it was not seen.

        Nothing is told of partitions none of whose files was seen.
        """
        trees = np.repeat(np.arange(len(self.files_of_trees)), self.files_of_trees)
        seen = np.asarray(list(self.taken))
        told = _by_file(self.files, weights, len(trees))
        ratios = np.interp(np.arange(len(trees)), seen, np.asarray(list(self.taken.values())) / told[seen])
        return np.where(np.isin(trees, trees[seen]), ratios, 1.0)


def _taken(
    plan: Plan, files: npt.NDArray[np.int64], measuring: Measuring, lengths: npt.NDArray[np.float64], most: int
) -> dict[int, float]:
    """Return the bytes that a row takes in so many of the files of a sample's rows, at equal distances."""
    files = np.unique(files)  # of those that share a cell by a hash, the first alone
    files = files[telling_files(plan, lengths)[files]]
    places = np.linspace(0, len(files) - 1, min(len(files), most)).astype(int)
    found = measuring.sizes(plan.layout, sorted(set(files[places].tolist())))
    return {file: row_bytes_of(found[file]) for file in sorted(found)}


def _by_file(files: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return the mean of the values of each file's rows, and for files without any the mean of all."""
    return means(files, values, count, float(values.mean()))


def _differ(one: Any, other: Any) -> Any:
    return np.abs(np.log(one / other)) > math.log(_AS_TOLD)


def row_bytes_of(share: Share) -> float:
    """Return the bytes that a row takes in a file."""
    return share.nbytes / share.rows
