"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it.

Where rows take more in some files than in others, more files are measured, and the layout is cut by bytes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan, make_plan
from dbt_zorder.layout.shares import Share
from dbt_zorder.layout.sizing import ALIKE, parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.layout.weighing import files_at, files_of_sample, resized, rows_by_file, weighed
from dbt_zorder.table.files import has_client
from dbt_zorder.table.holding import Holding
from dbt_zorder.table.measuring import MeasuredBySpark, Measuring

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_FAR_OFF = 1.3
"""By how much numbers of files may differ, to have measured files like those to come: a dictionary, and all else that a
file has once, weighs more on the rows of small ones."""
_TELLING_BYTES = 32 << 20
"""A file of so many tells what a row takes in any larger one."""
_MOST_MEASURED = 48
"""Files, to learn where rows take more and where less: of the others, the lengths of their rows tell."""
_LARGE = 4
"""Files of less than such a part of the largest, partitions of their own, may be of any size below it."""
_EXPLAINED = 1.3
"""How far a file may be from what lengths tell by those before and behind it: if it is farther, they tell nothing."""
_MIXED = 1.15
"""How far lengths in a file may be from what they were where its rows lay before: if farther, they lay in a file that
had long ones and short ones."""
_ROUNDS = 3


def sized_layout(
    holding: Holding, plan: Plan, spec: LayoutSpec, path: str, write: Callable[[Layout, DataFrame, str], None]
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
    return _sized_by(holding, plan, spec, MeasuredBySpark(df, f"{path}/{PILOT_DIRECTORY}", write))


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
        return _of_equal_bytes(plan, measuring, lengths, found).layout
    if far_off:  # the sample is of a size for other files
        return make_plan(holding.source, replace(spec, row_bytes=row_bytes), holding.known).layout
    return resized(plan, row_bytes).layout


def _of_equal_bytes(
    plan: Plan, measuring: Measuring, lengths: npt.NDArray[np.float64], found: Mapping[int, Share]
) -> Plan:
    """Return a plan whose files have equal shares of the bytes.

    Files that have some long rows and some short ones are told as if all were alike. Cut anew, their rows lie in files
    that have more of the ones or of the others; these are measured again, or all where lengths do not tell which.

    Args:
        plan: whose files have equal shares of the rows.
        measuring: tells what files take.
        lengths: of a row, by file.
        found: files that were measured.
    """
    row_bytes, explained = _by_file(plan, measuring, lengths, found)
    for _ in range(_ROUNDS):
        before, plan = files_of_sample(plan), weighed(plan, row_bytes)
        now, files = files_of_sample(plan), plan.layout.files
        _LOG.debug("cut by bytes, of which a row takes %.1f to %.1f: %d files", row_bytes.min(), row_bytes.max(), files)
        as_before = _means(now, lengths[before], files)
        lengths = _without_gaps(measuring.lengths(plan.layout))
        row_bytes = _means(now, row_bytes[before], files)
        mixed = _telling(plan, lengths)
        if explained:
            mixed &= _differ(lengths, as_before)
        measured = measuring.sizes(plan.layout, _some(np.flatnonzero(mixed))) if mixed.any() else {}
        as_told = True
        for file, share in measured.items():
            as_told &= not _differ(_row_bytes(share), row_bytes[file])
            row_bytes[file] = _row_bytes(share)
        if as_told:
            return plan
    return weighed(plan, row_bytes)


def _differ(one: Any, other: Any) -> Any:
    return np.abs(np.log(one / other)) > math.log(_MIXED)


def _by_file(
    plan: Plan, measuring: Measuring, lengths: npt.NDArray[np.float64], seen: Mapping[int, Share]
) -> tuple[npt.NDArray[np.float64], bool]:
    """Return what a row takes in each file: measured, or told by others whose rows are as long; and if lengths tell."""
    telling = np.flatnonzero(_telling(plan, lengths))
    measured = {file: _row_bytes(share) for file, share in seen.items()}

    def measure(wanted: Iterable[int]) -> list[int]:
        further = sorted(set(wanted) - measured.keys())
        if further:
            found = measuring.sizes(plan.layout, further)
            measured.update({file: _row_bytes(share) for file, share in found.items()})
        return sorted(measured, key=lambda file: float(lengths[file]))

    by_length = measure(_some(telling[np.argsort(lengths[telling], kind="stable")]))
    explained = _explained(lengths[by_length], np.asarray([measured[file] for file in by_length]))
    if not explained:
        by_length = measure(telling.tolist())
    taken = [measured[file] for file in by_length]
    row_bytes = np.interp(lengths, lengths[by_length], taken)
    row_bytes[by_length] = taken
    return np.asarray(row_bytes), explained


def _some(files: npt.NDArray[np.int64]) -> list[int]:
    """Return so many files as are measured at a time, at equal distances."""
    places = np.linspace(0, len(files) - 1, min(len(files), _MOST_MEASURED)).astype(int)
    return sorted(set(files[places].tolist()))


def _explained(lengths: npt.NDArray[np.float64], taken: npt.NDArray[np.float64]) -> bool:
    """Tell whether the lengths of rows, in ascending order, tell how many bytes they take in files."""
    if lengths[-1] / lengths[0] < math.sqrt(taken.max() / taken.min()):
        return False
    low, high = np.minimum(taken[:-2], taken[2:]), np.maximum(taken[:-2], taken[2:])
    return bool(((taken[1:-1] >= low / _EXPLAINED) & (taken[1:-1] <= high * _EXPLAINED)).all())


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
    """Tell whether a size in bytes is asked for, and nothing tells the bytes of a row."""
    size = parse_size(spec.file_size)
    return spec.files is None and size is not None and spec.row_bytes is None and layout.files > 1


def _telling(plan: Plan, lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which files are as large as those that are asked for, and not just what little a partition has."""
    size, files = rows_by_file(plan) * lengths, plan.layout.files_of_trees
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
