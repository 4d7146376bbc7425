"""Send the smaller side of a merge's joins whole to each task, which spares a shuffle of the table's rows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes, most_bytes_of
from dbt_zorder.spark.small_queries import estimated_bytes

_FEW_ROWS = 20_000
"""Number of rows up to which their bytes do not matter."""

_MOST_BYTES = 256 << 20
"""Limit for the bytes of the rows in memory, estimated by their types, on each machine."""

_MOST_FILE_BYTES = 64 << 20
"""Limit for the bytes of the rows in their files: more means long texts, whose length no type gives."""

_ROW_BYTES, _VALUE_BYTES = 64, 8
"""Bytes that Spark's hash table needs for each row, and for each value of it, in addition to the value."""


def sent_whole(rows: DataFrame, count: int) -> DataFrame:
    """Return rows with a hint that sends them whole to each task if they fit; otherwise, let Spark choose.

    Args:
        rows: a side of a join.
        count: number of its rows.
    """
    return f.broadcast(rows) if count <= _FEW_ROWS or _fits(rows, count) else rows


def _fits(rows: DataFrame, count: int) -> bool:
    width, in_files = estimated_row_bytes(rows.schema, nested=True), estimated_bytes(rows)
    if width is None or in_files is None or in_files > _MOST_FILE_BYTES:
        return False
    size = count * (width + _ROW_BYTES + _VALUE_BYTES * len(rows.columns))
    return size <= most_bytes_of(rows.sparkSession, _MOST_BYTES)
