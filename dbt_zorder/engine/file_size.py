"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it.

Where rows take more in some files than in others, more files are measured, and the layout is cut by bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from dbt_zorder.engine.choose import Holding
from dbt_zorder.engine.equal_bytes import of_equal_bytes, row_bytes_of
from dbt_zorder.engine.spark.pilot import MeasuredBySpark, Measuring
from dbt_zorder.layout.file_count import ALIKE, parse_size
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan, make_plan
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.layout.weighing import files_at, resized, telling_files
from dbt_zorder.request import BuildRequest, readable_partitions
from dbt_zorder.spark.files import has_client

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_FAR_OFF = 1.3
"""By how much numbers of files may differ, to have measured files like those to come: a dictionary, and all else that a
file has once, weighs more on the rows of small ones."""
_TELLING_BYTES = 32 << 20
"""A file of so many tells what a row takes in any larger one."""


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
        return of_equal_bytes(plan, spec.row_bytes, measuring).layout
    for last in (False, True):
        layout = plan.layout
        few = _spread(telling_files(plan, np.ones(layout.files)))
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
    others = sorted(set(_of_unlike_rows(telling_files(plan, lengths), lengths)) - found.keys())
    found |= measuring.sizes(layout, others) if others else {}
    if not all(1 / ALIKE <= row_bytes_of(share) / row_bytes <= ALIKE for share in found.values()):
        return of_equal_bytes(plan, row_bytes, measuring).layout
    if far_off:  # the sample is of a size for other files
        return make_plan(holding.source, replace(spec, row_bytes=row_bytes), holding.known).layout
    return resized(plan, row_bytes).layout


def _without_gaps(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return lengths where those of files of which no row was seen are as long as the others; none is 0."""
    seen = lengths[~np.isnan(lengths)]
    return np.maximum(1.0, np.where(np.isnan(lengths), seen.mean() if len(seen) else 1.0, lengths))


def _is_measured(layout: Layout, spec: LayoutSpec) -> bool:
    """Tell whether a size in bytes is asked for, and nothing tells the bytes of a row, or only those in the mean."""
    size = parse_size(spec.file_size)
    is_known = spec.row_bytes is not None and spec.alike
    return spec.files is None and size is not None and not is_known and layout.files > 1


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
