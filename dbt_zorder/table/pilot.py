"""A few files of a layout, written to learn how many bytes a row takes: no estimate knows what encodings make of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame

from dbt_zorder.layout.box import box_sql
from dbt_zorder.layout.descent import apply_layout
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import LayoutSpec, plan_layout
from dbt_zorder.layout.sizing import parse_size
from dbt_zorder.settings import open_files
from dbt_zorder.sql import glob_escape
from dbt_zorder.table.files import delete_path, has_client
from dbt_zorder.table.holding import Holding
from dbt_zorder.table.listing import list_data

_LOG = logging.getLogger("dbt_zorder")

PILOT_DIRECTORY = "_zorder_pilot"
_FILES = 3


def sized_layout(
    holding: Holding, layout: Layout, spec: LayoutSpec, path: str, write: Callable[[DataFrame, str], None]
) -> Layout:
    """Return a layout whose files come out at the size that was asked for.

    Where a size in bytes is asked for and no earlier version tells the bytes of a row, three files of the layout are
    written below ``path`` and measured, which reads the query once more; then it is laid out again if need be. Only
    partitions of more than one file are measured, for the number of the others' files is known.

    Args:
        holding: where the query's rows are; those that are placed here are measured here.
        layout: of the query, by the spec, from estimated bytes.
        spec: what was asked for.
        path: folder of the version.
        write: writes rows to a folder as the table's are written.
    """
    if not _is_measured(layout, spec):
        return layout
    if holding.rows is not None:
        return sized_here(holding, layout, spec)
    df = holding.source
    if not has_client(df.sparkSession):
        _LOG.debug("files are sized by an estimate, because nothing can be deleted over this connection")
        return layout
    boxes = [box for file in _spread(layout) if (box := box_sql(layout, file))]
    if not boxes:
        return layout
    folder = f"{path}/{PILOT_DIRECTORY}"
    try:
        few = df.filter(" OR ".join(f"({box})" for box in boxes))
        write(apply_layout(few, layout, open_files(df.sparkSession)), folder)
        total = sum(list_data(df.sparkSession, folder).values())
        rows = df.sparkSession.read.parquet(glob_escape(folder)).count()
    finally:
        delete_path(df.sparkSession, folder)
    if not rows:
        return layout
    _LOG.debug("a row takes %.1f bytes, measured on %d rows", total / rows, rows)
    return plan_layout(df, replace(spec, row_bytes=total / rows))


def sized_here(holding: Holding, layout: Layout, spec: LayoutSpec) -> Layout:
    """Return the same for rows that are placed here; for others the layout as it is."""
    if holding.rows is None or not _is_measured(layout, spec):
        return layout
    row_bytes = holding.rows.measured_row(layout, _spread(layout))
    if row_bytes is None:
        return layout
    return plan_layout(holding.source, replace(spec, row_bytes=row_bytes), holding.known)


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
