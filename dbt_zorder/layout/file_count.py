"""The number of files, from an exact number, a size in bytes, or the table's own size."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.arrow import collect_arrow, first_rows

_LOG = logging.getLogger("dbt_zorder")

MEGABYTE = 1 << 20
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
LEAST_SIZE = 1000
"""Least file size in bytes: a smaller size is less than a footer, so its unit is probably missing."""
_SIZE_LIMIT = 1 << 63
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*$", re.IGNORECASE)
_TELLING_ROWS = 10_000
_TELLING_BYTES = MEGABYTE
_PROBE_ROWS = 20_000
_FIRST_ROWS = 300
_FEWEST_ROWS = 30
_PROBE_BYTES = 64 << 20
"""Limit on the bytes that the rows of a probe need on the driver."""
_UNBOUNDED = 64 << 10
"""Bytes that count for a value of unlimited width when deciding whether rows need measuring."""
_FIXED = (
    t.NumericType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
    t.BooleanType,
    t.DayTimeIntervalType,
    t.YearMonthIntervalType,
    t.NullType,
    *filter(None, [getattr(t, "TimeType", None)]),  # since Spark 4.1
)
_CODECS = {"none": "none", "uncompressed": "none", "lz4_raw": "lz4"}
"""Spark's codec names that differ in Arrow."""
SPLIT_ABOVE = 1.5
"""Up to this many target sizes, data stays one file: two halves would fall short of the target."""


def parse_size(value: str | int) -> int | None:
    """Return a file size in bytes, None for ``auto``.

    Raises:
        ConfigError: the value is out of range, or is not an integer, a text like ``64MB``, or ``auto``.
    """
    if isinstance(value, str) and value.strip().lower() == "auto":
        return None
    size: float = 0
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match is not None:
        unit = match[2].upper().replace("I", "")
        size = float(match[1]) * _UNITS[unit if unit.endswith("B") else unit + "B"]
    elif isinstance(value, Integral) and not isinstance(value, bool):
        size = int(value)
    if LEAST_SIZE <= size < _SIZE_LIMIT:
        return int(size)
    meant = f" Did you mean '{int(size)}MB'?" if 0 < size < LEAST_SIZE else ""
    msg = (
        f"A file size is 'auto', a number of bytes from {LEAST_SIZE}, or a text like '64MB' or '1GB', below 8 million "
        f"TB; given was {value!r}.{meant}"
    )
    raise ConfigError(msg)


def auto_size(total_bytes: float) -> int:
    """Return the target file size for a table: 128 MB, 256 MB above 100 GB, 1 GB above 5 TB.

    The number of shuffle blocks is the square of the number of files. Larger files keep it within what Spark can serve.
    """
    if total_bytes > 5 << 40:
        return 1 << 30
    return 256 * MEGABYTE if total_bytes > 100 << 30 else 128 * MEGABYTE


def files_for(rows: int, row_bytes: float, target_bytes: int) -> int:
    """Return the number of files for rows at a target size, at least 1."""
    size = rows * row_bytes
    return 1 if size < SPLIT_ABOVE * target_bytes else max(1, round(size / target_bytes))


def files_of_parts(counts: npt.NDArray[np.int64], row_bytes: float, target_bytes: int) -> list[int]:
    """Return the number of files of every partition, at most its number of rows.

    Args:
        counts: rows of each partition.
        row_bytes: bytes of a row in a file.
        target_bytes: target size of a file.
    """
    return [max(1, min(files_for(count, row_bytes, target_bytes), count)) for count in counts.tolist()]


def row_bytes_in_files(files: pa.Table | None, target_bytes: int | None) -> float | None:
    """Return the bytes of a row in existing files, None if the files are too small to measure it.

    A file of few rows consists mostly of its footer. With 20 columns, that is 6 KB where a row needs 26 bytes.

    Args:
        files: ``file_size`` and ``row_count`` of the files, None if there are no figures.
        target_bytes: target size of the files to come, which may be as small; None for the table's own size.
    """
    if files is None:
        return None
    rows, size = files["row_count"], files["file_size"]
    least = min(_TELLING_BYTES, (target_bytes or auto_size(0)) / 2)
    telling = files.filter(pc.or_(pc.greater_equal(rows, _TELLING_ROWS), pc.greater_equal(size, least)))
    total, count = (pc.sum(telling[name]).as_py() or 0 for name in ("file_size", "row_count"))
    return total / count if count else None


def guessed_row_bytes(schema: t.StructType) -> float:
    """Return a guess of one row's bytes in Parquet: generous for numbers, rough for text."""
    return _width(schema, None)


def widest_row_bytes(schema: t.StructType) -> float:
    """Return bytes that hardly any table's rows reach.

    If even such rows need less than a file, they need no measuring.
    """
    return _width(schema, _UNBOUNDED)


def plain_row_bytes(schema: t.StructType) -> float:
    """Return the bytes of one row's numbers, times and flags without encoding."""
    return _width(schema, 0.0)


def codec_of(spark: SparkSession, option: str | None) -> str:
    """Return Spark's name of a write's codec: the option of the write, or else the session's codec."""
    return str(option or spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()


def arrow_codec(codec: str) -> str:
    """Return Arrow's name of one of Spark's codecs."""
    return _CODECS.get(codec, codec)


def probe_row_bytes(
    df: DataFrame, sort_by: Sequence[str], negligible: float = 0.0, compression: str | None = None
) -> float:
    """Return the bytes of one row in a Parquet file, measured on the first rows of ``df`` in key order.

    Text may be of any length. If there is any, a few rows are measured first, to find how many the driver can fetch.

    Args:
        df: the query.
        sort_by: SQL text of the expressions that sort the rows.
        negligible: bytes of a row below which a rough measure is enough.
        compression: codec of the write, None for the session's.
    """
    codec = codec_of(df.sparkSession, compression)
    rows: Sequence[int] = (_PROBE_ROWS,)
    if widest_row_bytes(df.schema) >= _UNBOUNDED:
        rows = (_FIRST_ROWS, _FEWEST_ROWS)
    found = next((one for count in rows if (one := _measured(df, sort_by, count, codec))), None)
    if found is None:
        return guessed_row_bytes(df.schema)
    row_bytes, fetched = found
    more = min(_PROBE_ROWS, int(_PROBE_BYTES / fetched))
    if more > rows[0] and 2 * row_bytes >= negligible:
        row_bytes, _ = _measured(df, sort_by, more, codec) or found
    return row_bytes


def _measured(df: DataFrame, sort_by: Sequence[str], rows: int, codec: str) -> tuple[float, float] | None:
    """Return the bytes of a row in a Parquet file and in memory; None if the rows cannot be fetched."""
    try:
        table = collect_arrow(first_rows(df, rows).coalesce(1).sortWithinPartitions(*map(f.expr, sort_by)))
        sink = io.BytesIO()
        pq.write_table(table, sink, compression=arrow_codec(codec))
    except Exception as exc:  # Arrow does not support the type, or the rows exceed the driver's memory
        _LOG.debug("%d rows could not be measured: %s", rows, exc)
        return None
    count = max(1, int(table.num_rows))
    return max(1.0, sink.tell() / count), max(1.0, table.nbytes / count)


def _width(data_type: t.DataType, unbounded: float | None) -> float:
    """Return a guess of a value's bytes; if ``unbounded`` is given, it counts for values of unlimited width."""
    if isinstance(data_type, t.StructType):
        return sum(_width(field.dataType, unbounded) for field in data_type.fields)
    if isinstance(data_type, _FIXED):
        return 16 if isinstance(data_type, t.DecimalType) else 8
    if unbounded is not None:
        return unbounded
    if isinstance(data_type, t.ArrayType):
        return 8 * _width(data_type.elementType, None)
    if isinstance(data_type, t.MapType):
        return 8 * (_width(data_type.keyType, None) + _width(data_type.valueType, None))
    return 128
