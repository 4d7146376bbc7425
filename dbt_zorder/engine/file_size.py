"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from dbt_zorder.engine.choose import Holding
from dbt_zorder.engine.plan import make_plan, resize_plan
from dbt_zorder.engine.row_bytes import Measuring
from dbt_zorder.engine.spark.pilot import MeasuredBySpark
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.files import has_client

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_FAR_OFF = 1.3
"""Ratio of numbers of files above which those measured are unlike those to come: a dictionary, and all else that a file
has once, weighs more on the rows of small ones."""
_LEAST_TELLING_BYTES = 32 << 20
_LARGE = 4
"""Files of less than such a part of the largest are partitions of their own: these may be of any size below it."""


def sized_layout(
    holding: Holding,
    plan: Plan,
    spec: LayoutSpec,
    path: str,
    write: Callable[[Layout, DataFrame, str], None],
) -> Layout:
    """Return a layout whose files come out at the size that was asked for, where rows take about as many bytes.

    Where a size in bytes is asked for and no earlier version tells the bytes of a row, three files of the layout are
    written below ``path`` and measured, which reads the query once more. Then the rows are laid out by what was
    measured. Where the estimate was so far off that these files were far from the size, three of the new layout are
    measured, too.

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
    for last in (False, True):
        layout = plan.layout
        found = measuring.size_of(layout, _spread(_telling_files(plan)))
        if not found.rows:
            return layout
        row_bytes = found.nbytes / found.rows
        _LOG.debug("a row takes %.1f bytes, measured on some of %d files", row_bytes, layout.files)
        corrected = resize_plan(plan, row_bytes)
        fewest, most = sorted((layout.files, corrected.layout.files))
        if fewest == 1 or most <= _FAR_OFF * fewest:
            return corrected.layout
        # the sample is of a size for other files
        plan = make_plan(holding.source, replace(spec, row_bytes=row_bytes), holding.known)
        if last or row_bytes * layout.rows / layout.files > _LEAST_TELLING_BYTES:
            break
    return plan.layout


def _is_measured(layout: Layout, spec: LayoutSpec) -> bool:
    """Tell whether a size in bytes is asked for, and no earlier version tells the bytes of a row."""
    size = parse_size(spec.file_size)
    return spec.files is None and size is not None and spec.row_bytes is None and layout.files > 1


def _telling_files(plan: Plan) -> npt.NDArray[np.bool_]:
    """Return which files are as large as those that are asked for, and not just what little a partition has."""
    files = plan.layout.files_of_trees
    rows = np.repeat(plan.drawn.counts / np.maximum(1, files), files)
    return np.asarray(np.repeat(files > 1, files) | (rows >= rows.max() / _LARGE))


def _spread(telling: npt.NDArray[np.bool_]) -> list[int]:
    """Return numbers of a few files, at equal distances."""
    files = np.flatnonzero(telling)
    return sorted({int(files[len(files) * (2 * n + 1) // (2 * _FILES)]) for n in range(_FILES)})
