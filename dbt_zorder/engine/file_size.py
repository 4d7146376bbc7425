"""Writes a few pilot files of a layout to measure the bytes per row: no estimate predicts the effect of encodings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from dbt_zorder.engine.choose import RowSource
from dbt_zorder.engine.plan import make_plan, resize_plan
from dbt_zorder.engine.row_bytes import FileMeasurer
from dbt_zorder.engine.spark.pilot import SparkFileMeasurer
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.files import has_client

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_FAR_OFF = 1.3
"""Ratio of file counts above which pilot files are too unlike the final ones. A dictionary, and everything else that a
file has once, weighs more per row in small files."""
_RELIABLE_FILE_BYTES = 32 << 20
_LARGE = 4
"""Files smaller than this fraction of the largest are partitions of their own, which may have any size below it."""


def sized_layout(
    source: RowSource,
    plan: Plan,
    spec: LayoutSpec,
    path: str,
    write: Callable[[Layout, DataFrame, str], None],
) -> Layout:
    """Return a layout whose files come out at the requested size, if rows have similar sizes.

    Measures only if a size in bytes is requested and no previous version gives the bytes per row. It then writes three
    files of the layout below ``path``, which reads the query once more. The layout is planned again from their size. If
    these files were far from the requested size, it also measures three files of the new layout.

    Args:
        source: rows of the query; rows that this process places are measured in memory.
        plan: plan of the query by the spec, from estimated bytes.
        spec: layout specification.
        path: folder of the version.
        write: function that places rows by a layout, and writes them to a folder as the table's files are written.
    """
    if source.rows is not None:
        return sized_here(source, plan, spec)
    df = source.query
    if not _is_measured(plan.layout, spec):
        return plan.layout
    if not has_client(df.sparkSession):
        _LOG.debug("files are sized by an estimate, because nothing can be deleted over this connection")
        return plan.layout
    return _sized_by(source, plan, spec, SparkFileMeasurer(df, f"{path}/{PILOT_DIRECTORY}", write))


def sized_here(source: RowSource, plan: Plan, spec: LayoutSpec) -> Layout:
    """Return the same layout for rows that this process places; return other layouts unchanged."""
    if source.rows is None or not _is_measured(plan.layout, spec):
        return plan.layout
    return _sized_by(source, plan, spec, source.rows)


def _sized_by(source: RowSource, plan: Plan, spec: LayoutSpec, measuring: FileMeasurer) -> Layout:
    for last in (False, True):
        layout = plan.layout
        found = measuring.size_of(layout, _spread(_full_files(plan)))
        if not found.rows:
            return layout
        row_bytes = found.nbytes / found.rows
        _LOG.debug("a row has %.1f bytes on disk, measured on pilot files of %d files", row_bytes, layout.files)
        corrected = resize_plan(plan, row_bytes)
        fewest, most = sorted((layout.files, corrected.layout.files))
        if fewest == 1 or most <= _FAR_OFF * fewest:
            return corrected.layout
        # the sample was drawn for another number of files
        plan = make_plan(source.query, replace(spec, row_bytes=row_bytes), source.known)
        if last or row_bytes * layout.rows / layout.files > _RELIABLE_FILE_BYTES:
            break
    return plan.layout


def _is_measured(layout: Layout, spec: LayoutSpec) -> bool:
    """Return whether a size in bytes is requested, and no previous version gives the bytes per row."""
    size = parse_size(spec.file_size)
    return spec.files is None and size is not None and spec.row_bytes is None and layout.files > 1


def _full_files(plan: Plan) -> npt.NDArray[np.bool_]:
    """Return a mask of the files of the requested size, without the small remainders of partitions."""
    files = plan.layout.files_of_trees
    rows = np.repeat(plan.drawn.counts / np.maximum(1, files), files)
    return np.asarray(np.repeat(files > 1, files) | (rows >= rows.max() / _LARGE))


def _spread(full: npt.NDArray[np.bool_]) -> list[int]:
    """Return the numbers of a few files at equal distances."""
    files = np.flatnonzero(full)
    return sorted({int(files[len(files) * (2 * n + 1) // (2 * _FILES)]) for n in range(_FILES)})
