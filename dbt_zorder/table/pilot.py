"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it.

Where rows take more in some files than in others, more files are measured, and the layout is cut by bytes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan, make_plan
from dbt_zorder.layout.sample import ROWS_PER_FILE
from dbt_zorder.layout.shares import Share
from dbt_zorder.layout.sizing import ALIKE, parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.layout.weighing import files_at, files_of_sample, redrawn, resized, rows_by_file, weighed
from dbt_zorder.table.files import has_client
from dbt_zorder.table.holding import Holding
from dbt_zorder.table.measuring import MeasuredBySpark, Measuring
from dbt_zorder.table.request import BuildRequest, readable_partitions

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_FAR_OFF = 1.3
"""By how much numbers of files may differ, to have measured files like those to come: a dictionary, and all else that a
file has once, weighs more on the rows of small ones."""
_TELLING_BYTES = 32 << 20
"""A file of so many tells what a row takes in any larger one."""
_LARGE = 4
"""Files of less than such a part of the largest, partitions of their own, may be of any size below it."""
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


def sized_layout(
    holding: Holding,
    plan: Plan,
    spec: LayoutSpec,
    path: str,
    request: BuildRequest,
    write: Callable[[Layout, DataFrame, str], None],
) -> Layout:
    """Return a layout whose files come out at the size that was asked for.

    Where a size in bytes is asked for and no earlier version tells the bytes of a row, three files of the layout are
    written below ``path`` and measured, which reads the query once more. Where the estimate was far off, so that these
    files were far from the size, it is laid out again, and others are. The query is read once more to see whether rows
    are longer in some files than in others; then these are measured, too. Where they take unlike many bytes, more are,
    until files can have equal shares of the bytes.

    Args:
        holding: where the query's rows are; those that are placed here are measured here.
        plan: of the query, by the spec, from estimated bytes.
        spec: what was asked for.
        path: folder of the version.
        request: of the table.
        write: places rows by a layout, and writes them to a folder as the table's are written.
    """
    if holding.rows is not None:
        return sized_here(holding, plan, spec)
    df = holding.source
    if not _is_measured(plan.layout, spec):
        return plan.layout
    if not has_client(df.sparkSession):
        _LOG.debug("files are sized by an estimate, because nothing can be deleted over this connection")
        return plan.layout
    readable = partial(readable_partitions, request=request)
    return _sized_by(holding, plan, spec, MeasuredBySpark(df, f"{path}/{PILOT_DIRECTORY}", write, readable))


def sized_here(holding: Holding, plan: Plan, spec: LayoutSpec) -> Layout:
    """Return the same for rows that are placed here; for others the layout as it is."""
    if holding.rows is None or not _is_measured(plan.layout, spec):
        return plan.layout
    return _sized_by(holding, plan, spec, holding.rows)


def _sized_by(holding: Holding, plan: Plan, spec: LayoutSpec, measuring: Measuring) -> Layout:
    """Lay out by what files of a layout tell of a row; once more where they were nothing like those to come.

    Args:
        holding: where the query's rows are.
        plan: by estimated bytes.
        spec: what was asked for.
        measuring: tells what files take.
    """
    if spec.row_bytes is not None:
        return _of_equal_bytes(plan, spec.row_bytes, measuring).layout
    for last in (False, True):
        layout = plan.layout
        few = _spread(_telling(plan, np.ones(layout.files)))
        found = dict(measuring.sizes(layout, few))
        if not found:
            return layout
        row_bytes = sum(share.nbytes for share in found.values()) / sum(share.rows for share in found.values())
        _LOG.debug("a row takes %.1f bytes, measured on some of %d files", row_bytes, layout.files)
        fewest, most = sorted((layout.files, files_at(plan, row_bytes)))
        far_off = fewest > 1 and most > _FAR_OFF * fewest
        if last or not far_off or row_bytes * layout.rows / layout.files > _TELLING_BYTES:
            break
        plan = make_plan(holding.source, replace(spec, row_bytes=row_bytes), holding.known)
    lengths = _without_gaps(measuring.lengths(layout))
    others = sorted(set(_of_unlike_rows(_telling(plan, lengths), lengths)) - found.keys())
    found |= measuring.sizes(layout, others) if others else {}
    if not all(1 / ALIKE <= _row_bytes(share) / row_bytes <= ALIKE for share in found.values()):
        return _of_equal_bytes(plan, row_bytes, measuring).layout
    if far_off:  # the sample is of a size for other files
        return make_plan(holding.source, replace(spec, row_bytes=row_bytes), holding.known).layout
    return resized(plan, row_bytes).layout


def _of_equal_bytes(plan: Plan, row_bytes: float, measuring: Measuring) -> Plan:
    """Return a plan whose files have equal shares of the bytes.

    Args:
        plan: of the query.
        row_bytes: that a row takes in the mean.
        measuring: tells what files take.
    """
    rows = len(plan.sample.ranks)
    keys, lengths = measuring.drawn(plan, rows)
    # files of long rows have few of the sampled ones: as many count as if all were alike
    telling = lengths.sum() ** 2 / (lengths**2).sum() if len(lengths) else 0.0
    if 0 < telling < (wanted := min(rows, ROWS_PER_FILE * plan.layout.files)):
        keys, lengths = measuring.drawn(plan, max(rows, min(_MOST_DRAWN, int(rows * wanted / telling))))
    plan, lengths = redrawn(plan, row_bytes, keys), np.maximum(lengths, 1.0)
    weights = np.full(len(lengths), row_bytes)
    told: list[tuple[float, float]] = []
    for number in range(_ROUNDS):
        files = files_of_sample(plan)
        of_file, expected = (_means(files, values, plan.layout.files) for values in (lengths, weights))
        taken = _taken(plan, measuring, of_file, _MOST_CHECKED if number else _MOST_MEASURED)
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
    seen: list[tuple[npt.NDArray[np.int64], dict[int, float]]] = []
    for _ in range(_ROUNDS):
        files = files_of_sample(plan)
        taken = _taken(plan, measuring, _means(files, weights, plan.layout.files), _MOST_OF_ALL)
        if not taken or (seen and not _differ(_ratios(files, weights, taken), 1.0).any()):
            break
        _LOG.debug("cut by bytes, by what %d of %d files take", len(taken), plan.layout.files)
        seen.append((files, taken))
        for files, taken in seen * _SWEEPS:
            weights = weights * np.interp(files, list(taken), _ratios(files, weights, taken))
        plan = weighed(plan, weights)
    return plan


def _ratios(
    files: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], taken: Mapping[int, float]
) -> npt.NDArray[np.float64]:
    """Return by how much more a row takes in some files than it is taken for."""
    told = _means(files, weights, int(files.max()) + 1)
    return np.asarray([size / told[file] for file, size in taken.items()])


def _taken(plan: Plan, measuring: Measuring, lengths: npt.NDArray[np.float64], most: int) -> dict[int, float]:
    """Return the bytes that a row takes in so many files, at equal distances."""
    files = np.unique(files_of_sample(plan))  # of those that share a cell by a hash, the first alone
    files = files[_telling(plan, lengths)[files]]
    places = np.linspace(0, len(files) - 1, min(len(files), most)).astype(int)
    found = measuring.sizes(plan.layout, sorted(set(files[places].tolist())))
    return {file: _row_bytes(found[file]) for file in sorted(found)}


def _differ(one: Any, other: Any) -> Any:
    return np.abs(np.log(one / other)) > math.log(_AS_TOLD)


def _row_bytes(share: Share) -> float:
    return share.nbytes / share.rows


def _means(numbers: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return the mean of the values of each number, and for those without any the mean of all."""
    rows = np.bincount(numbers, minlength=count)
    total = np.bincount(numbers, weights=values, minlength=count)
    return np.where(rows > 0, total / np.maximum(1, rows), values.mean())


def _without_gaps(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return lengths where those of files of which no row was seen are as long as the others; none is 0."""
    seen = lengths[~np.isnan(lengths)]
    return np.maximum(1.0, np.where(np.isnan(lengths), seen.mean() if len(seen) else 1.0, lengths))


def _is_measured(layout: Layout, spec: LayoutSpec) -> bool:
    """Tell whether a size in bytes is asked for, and nothing tells the bytes of a row, or only those in the mean."""
    size = parse_size(spec.file_size)
    is_known = spec.row_bytes is not None and spec.alike
    return spec.files is None and size is not None and not is_known and layout.files > 1


def _telling(plan: Plan, lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which files are as large as those that are asked for, and not just what little a partition has."""
    files = plan.layout.files_of_trees
    of_trees = np.bincount(np.repeat(np.arange(len(files)), files), weights=lengths) / files
    size = rows_by_file(plan) * np.repeat(of_trees, files)
    return np.asarray(np.repeat(files > 1, files) | (size >= size.max() / _LARGE))


def _spread(telling: npt.NDArray[np.bool_]) -> list[int]:
    """Return numbers of a few files, at equal distances."""
    files = np.flatnonzero(telling)
    return sorted({int(files[len(files) * (2 * n + 1) // (2 * _FILES)]) for n in range(_FILES)})


def _of_unlike_rows(telling: npt.NDArray[np.bool_], lengths: npt.NDArray[np.float64]) -> list[int]:
    """Return the file of the longest rows, and that of the shortest, where they are not about as long as the others."""
    files = np.flatnonzero(telling)
    usual = float(np.median(lengths[files]))
    longest, shortest = int(files[np.argmax(lengths[files])]), int(files[np.argmin(lengths[files])])
    return [file for file in (longest, shortest) if not 1 / ALIKE <= lengths[file] / usual <= ALIKE]
