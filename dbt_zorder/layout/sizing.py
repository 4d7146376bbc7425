"""How many files: from an exact number, a size in bytes, or the table's own size."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.errors import ConfigError

_LOG = logging.getLogger("dbt_zorder")

MEGABYTE = 1 << 20
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*$", re.IGNORECASE)
_PROBE_ROWS = 20_000
SPLIT_ABOVE = 1.5
"""What is smaller than this many target sizes stays one file: two halves would fall short of the target."""


def parse_size(value: str | int) -> int | None:
    """Return a file size in bytes, None for ``auto``.

    Raises:
        ConfigError: not a positive integer, a text like ``64MB``, or ``auto``.
    """
    if isinstance(value, str) and value.strip().lower() == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match is not None:
        unit = match[2].upper().replace("I", "")
        size = int(float(match[1]) * _UNITS[unit if unit.endswith("B") else unit + "B"])
        if size > 0:
            return size
    msg = f"A file size is 'auto', a number of bytes, or a text like '64MB' or '1GB'; given was {value!r}."
    raise ConfigError(msg)


def auto_size(total_bytes: float) -> int:
    """Return the target size of a file for a table: 128 MB, 256 MB above 100 GB, 1 GB above 5 TB.

    Larger files keep the number of shuffle blocks, the square of the number of files, within what Spark can serve.
    """
    if total_bytes > 5 << 40:
        return 1 << 30
    return 256 * MEGABYTE if total_bytes > 100 << 30 else 128 * MEGABYTE


def files_for(rows: int, row_bytes: float, target_bytes: int) -> int:
    """Return the number of files for some rows at a target size, at least 1."""
    size = rows * row_bytes
    return 1 if size < SPLIT_ABOVE * target_bytes else max(1, round(size / target_bytes))


def widest_row(schema: t.StructType) -> float:
    """Return a generous guess of one row's bytes in Parquet: what lies far below a file's size needs no measuring."""
    return sum(_widest(field.dataType) for field in schema.fields)


def probe_row_bytes(df: DataFrame, sort_by: Sequence[str]) -> float:
    """Return the bytes that one row takes in a Parquet file, measured on the first rows of ``df`` in key order."""
    head = df.limit(_PROBE_ROWS).sortWithinPartitions(*sort_by) if sort_by else df.limit(_PROBE_ROWS)
    try:
        table = collect_arrow(head)
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="snappy")
    except Exception as exc:  # a type that Arrow cannot carry: a guess serves, files only come out smaller
        _LOG.debug("the size of a row is guessed, not measured: %s", exc)
        return widest_row(df.schema)
    return max(1.0, float(sink.tell()) / max(1, int(table.num_rows)))


def _widest(data_type: t.DataType) -> float:
    if isinstance(data_type, t.StructType):
        return widest_row(data_type)
    if isinstance(data_type, t.ArrayType):
        return 8 * _widest(data_type.elementType)
    if isinstance(data_type, t.MapType):
        return 8 * (_widest(data_type.keyType) + _widest(data_type.valueType))
    if isinstance(data_type, (t.NumericType, t.DateType, t.TimestampType, t.TimestampNTZType, t.BooleanType)):
        return 16 if isinstance(data_type, t.DecimalType) else 8
    return 128
