"""How large the files of a batch are to be: of the size that its table's have."""

from __future__ import annotations

from dbt_zorder.layout.file_count import LEAST_SIZE, auto_size, parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.stats.summary import Summary

NOT_BUILT = Summary(0, 0, 0, {})
"""Figures of a table's last whole build, where nothing says them."""

_OUTGROWN = 4
"""A table of so many times the rows that it was built of is to have larger files than it was built into."""


def target_bytes(spec: LayoutSpec, built: Summary, table_bytes: int) -> int:
    """Return the size of a file of a table: a number of files means the size that they had when it was last built.

    It is never below the least that can be asked for, which files of a few rows are.

    Args:
        spec: of the model.
        built: the table when it was last built; zeros if that is not known.
        table_bytes: that it has now.
    """
    if spec.files is not None and built.files and built.rows:
        return max(LEAST_SIZE, built.bytes // built.files)
    return (None if spec.files is not None else parse_size(spec.file_size)) or auto_size(table_bytes)


def files_of_batch(spec: LayoutSpec, built: Summary, table_rows: int, rows: int, *, partitioned: bool) -> int | None:
    """Return of how many files a batch is to be that outgrows its table; None if files of the table's size serve.

    With ``zorder_files``, files of a table that was built of a few rows, or of none, are tiny: by them a later backfill
    would be thousands. So such a batch is its share of the files that the table would have if it were built now; one
    that goes into partitions is laid out as a build would lay it out.

    Args:
        spec: of the model.
        built: the table when it was last built.
        table_rows: that it has now.
        rows: of the batch.
        partitioned: the number of files is that of each partition.
    """
    is_known = built.rows > 0 or table_rows == 0
    if spec.files is None or not is_known or rows + table_rows <= _OUTGROWN * built.rows:
        return None
    if partitioned:
        return spec.files if rows > _OUTGROWN * built.rows else None
    return max(1, round(spec.files * rows / max(1, rows + table_rows)))
