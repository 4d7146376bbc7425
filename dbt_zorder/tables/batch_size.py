"""Choose the file size of a batch, so that its files are as large as those of its table."""

from __future__ import annotations

from dbt_zorder.layout.file_count import LEAST_SIZE, auto_size, parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.stats.summary import Summary

NOT_BUILT = Summary(0, 0, 0, {})
"""Stands for the figures of a table's last whole build where they are missing."""

_OUTGROWN = 4
"""A table that has grown by this factor since its last build gets larger files."""


def target_bytes(spec: LayoutSpec, built: Summary, table_bytes: int) -> int:
    """Return the target size of a table's files, in bytes.

    A requested number of files stands for the mean file size of the last build. The result is at least the
    smallest configurable size, because files of very few rows are smaller.

    Args:
        spec: the model's layout settings.
        built: figures of the table's last whole build; zeros if they are missing.
        table_bytes: the table's size now.
    """
    if spec.files is not None and built.files and built.rows:
        return max(LEAST_SIZE, built.bytes // built.files)
    return (None if spec.files is not None else parse_size(spec.file_size)) or auto_size(table_bytes)


def files_of_batch(spec: LayoutSpec, built: Summary, table_rows: int, rows: int, *, partitioned: bool) -> int | None:
    """Return the number of files of a batch that outgrows its table; None if files of the table's size fit.

    With ``zorder_files``, a table built of few or no rows has tiny files. At that size a later backfill would be
    thousands of files. The batch therefore gets its share of the files that a build of the whole table would make now.
    A batch for partitions is laid out as a build would lay it out.

    Args:
        spec: the model's layout settings.
        built: figures of the table's last whole build.
        table_rows: the table's number of rows now.
        rows: number of rows in the batch.
        partitioned: whether the number of files applies to each partition.
    """
    is_known = built.rows > 0 or table_rows == 0
    if spec.files is None or not is_known or rows + table_rows <= _OUTGROWN * built.rows:
        return None
    if partitioned:
        return spec.files if rows > _OUTGROWN * built.rows else None
    return max(1, round(spec.files * rows / max(1, rows + table_rows)))
