"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame

from dbt_zorder.layout.box import box_sql
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.sizing import parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.sql import glob_escape
from dbt_zorder.table.files import delete_path, has_client
from dbt_zorder.table.holding import Holding
from dbt_zorder.table.listing import list_data

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3
_PILOTS = 2
_FAR_OFF = 1.3
"""By how much numbers of files may differ, to have measured files like those to come: a dictionary, and all else that a
file has once, weighs more on the rows of small ones."""
_TELLING_BYTES = 32 << 20
"""A file of so many tells what a row takes in any larger one."""


def sized_layout(
    holding: Holding, layout: Layout, spec: LayoutSpec, path: str, write: Callable[[Layout, DataFrame, str], None]
) -> Layout:
    """Return a layout whose files come out at the size that was asked for.

    Where a size in bytes is asked for and no earlier version tells the bytes of a row, three files of the layout are
    written below ``path`` and measured, which reads the query once more; then it is laid out again. Where the estimate
    was far off, so that these files were far from the size, that is done twice. Only partitions of more than one file
    are measured, for the number of the others' files is known.

    Args:
        holding: where the query's rows are; those that are placed here are measured here.
        layout: of the query, by the spec, from estimated bytes.
        spec: what was asked for.
        path: folder of the version.
        write: places rows by a layout, and writes them to a folder as the table's are written.
    """
    if holding.rows is not None:
        return sized_here(holding, layout, spec)
    df = holding.source
    if not _is_measured(layout, spec):
        return layout
    if not has_client(df.sparkSession):
        _LOG.debug("files are sized by an estimate, because nothing can be deleted over this connection")
        return layout
    folder = f"{path}/{PILOT_DIRECTORY}"

    def measure(layout: Layout) -> float | None:
        boxes = [box for file in _spread(layout) if (box := box_sql(layout, file))]
        if not boxes:
            return None
        try:
            few = df.filter(" OR ".join(f"({box})" for box in boxes))
            write(layout, few, folder)
            total = sum(list_data(df.sparkSession, folder).values())
            rows = df.sparkSession.read.parquet(glob_escape(folder)).count()
        finally:
            delete_path(df.sparkSession, folder)
        return total / rows if rows else None

    return _sized_by(holding, layout, spec, measure)


def sized_here(holding: Holding, layout: Layout, spec: LayoutSpec) -> Layout:
    """Return the same for rows that are placed here; for others the layout as it is."""
    rows = holding.rows
    if rows is None or not _is_measured(layout, spec):
        return layout
    return _sized_by(holding, layout, spec, lambda found: rows.measured_row(found, _spread(found)))


def _sized_by(holding: Holding, layout: Layout, spec: LayoutSpec, measure: Callable[[Layout], float | None]) -> Layout:
    """Lay out by what files of a layout tell of a row; once more where they were nothing like those to come.

    Args:
        holding: where the query's rows are.
        layout: by estimated bytes.
        spec: what was asked for.
        measure: tells the bytes of a row in some files of a layout, None if they have none.
    """
    for _ in range(_PILOTS):
        row_bytes = measure(layout)
        if row_bytes is None:
            return layout
        _LOG.debug("a row takes %.1f bytes, measured on some of %d files", row_bytes, layout.files)
        before, layout = layout, plan_layout(holding.source, replace(spec, row_bytes=row_bytes), holding.known)
        fewest, most = sorted((before.files, layout.files))
        if fewest == 1 or most <= _FAR_OFF * fewest or row_bytes * before.rows / before.files > _TELLING_BYTES:
            break
    return layout


def _is_measured(layout: Layout, spec: LayoutSpec) -> bool:
    """Tell whether a size in bytes is asked for, and nothing tells the bytes of a row."""
    size = parse_size(spec.file_size)
    return spec.files is None and size is not None and spec.row_bytes is None and layout.files > 1


def _spread(layout: Layout) -> list[int]:
    """Return numbers of a few files, spread over those that have others in their partition.

    A partition of one file may be of any size below it, and then tells of footers most of all.
    """
    trees = np.append(layout.first_file[:: 1 << layout.file_levels], layout.files)
    files_of_tree = np.diff(trees)
    cut = np.flatnonzero(np.repeat(files_of_tree > 1, files_of_tree))
    return sorted({int(cut[len(cut) * (2 * n + 1) // (2 * _FILES)]) for n in range(_FILES)}) if len(cut) else []
