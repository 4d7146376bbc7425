"""How many files: from an exact number, a size in bytes, or the table's own size."""

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
"""Less does not even hold a footer: somebody left out the unit."""
_SIZE_LIMIT = 1 << 63
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*$", re.IGNORECASE)
_TELLING_ROWS = 10_000
_TELLING_BYTES = MEGABYTE
_PROBE_ROWS = 20_000
_FIRST_ROWS = 300
_FEWEST_ROWS = 30
_PROBE_BYTES = 64 << 20
"""What the rows of a probe may weigh on the driver."""
_UNBOUNDED = 64 << 10
"""Bytes of a value of a type without a greatest width, where its rows are told to be too few to need measuring."""
_FIXED = (
    t.NumericType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
    t.BooleanType,
    t.DayTimeIntervalType,
    t.YearMonthIntervalType,
    t.NullType,
    *filter(None, [getattr(t, "TimeType", None)]),  # of Spark 4.1
)
_CODECS = {"none": "none", "uncompressed": "none", "lz4_raw": "lz4"}
"""Names of Spark's codecs that are others in Arrow."""
SPLIT_ABOVE = 1.5
"""What is smaller than this many target sizes stays one file: two halves would fall short of the target."""


def parse_size(value: str | int) -> int | None:
    """Return a file size in bytes, None for ``auto``.

    Raises:
        ConfigError: not an integer, a text like ``64MB``, or ``auto``; or out of range.
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


def files_of_parts(counts: npt.NDArray[np.int64], row_bytes: float, target_bytes: int) -> list[int]:
    """Return the number of files of every partition, never more than it has rows.

    Args:
        counts: rows of each.
        row_bytes: that a row takes.
        target_bytes: of a file.
    """
    return [max(1, min(files_for(count, row_bytes, target_bytes), count)) for count in counts.tolist()]


def measured_row(files: pa.Table | None, target_bytes: int | None) -> float | None:
    """Return the bytes that a row takes in files that are there, None if they are too small to tell.

    A file of few rows is most of all its footer: of 20 columns, 6 KB, where a row takes 26 bytes.

    Args:
        files: their ``file_size`` and ``row_count``, None if they are not known.
        target_bytes: of the files to come, which may be as small; None is the table's own size.
    """
    if files is None:
        return None
    rows, size = files["row_count"], files["file_size"]
    least = min(_TELLING_BYTES, (target_bytes or auto_size(0)) / 2)
    telling = files.filter(pc.or_(pc.greater_equal(rows, _TELLING_ROWS), pc.greater_equal(size, least)))
    total, count = (pc.sum(telling[name]).as_py() or 0 for name in ("file_size", "row_count"))
    return total / count if count else None


def guessed_row(schema: t.StructType) -> float:
    """Return a guess of one row's bytes in Parquet: generous for numbers, and no more than a guess for text."""
    return _width(schema, None)


def widest_row(schema: t.StructType) -> float:
    """Return bytes that the rows of hardly any table reach: what lies below a file even so needs no measuring."""
    return _width(schema, _UNBOUNDED)


def numbers_row(schema: t.StructType) -> float:
    """Return the bytes that one row's numbers, times and flags take as they are."""
    return _width(schema, 0.0)


def codec_of(spark: SparkSession, told: str | None) -> str:
    """Return Spark's name of the codec of a write: as the writer is told, or else by the session."""
    return str(told or spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()


def arrow_codec(codec: str) -> str:
    """Return Arrow's name of a codec of Spark's."""
    return _CODECS.get(codec, codec)


def probe_row_bytes(
    df: DataFrame, sort_by: Sequence[str], negligible: float = 0.0, compression: str | None = None
) -> float:
    """Return the bytes that one row takes in a Parquet file, measured on the first rows of ``df`` in key order.

    Text is as long as it is, so that where there is any a few rows tell first how many can be fetched.

    Args:
        df: the query.
        sort_by: SQL text of what the rows are sorted by.
        negligible: a row of so few bytes is not measured more closely.
        compression: codec of the write, None for the session's.
    """
    codec = codec_of(df.sparkSession, compression)
    rows: Sequence[int] = (_PROBE_ROWS,)
    if widest_row(df.schema) >= _UNBOUNDED:
        rows = (_FIRST_ROWS, _FEWEST_ROWS)
    found = next((one for count in rows if (one := _measured(df, sort_by, count, codec))), None)
    if found is None:
        return guessed_row(df.schema)
    row_bytes, fetched = found
    more = min(_PROBE_ROWS, int(_PROBE_BYTES / fetched))
    if more > rows[0] and 2 * row_bytes >= negligible:
        row_bytes, _ = _measured(df, sort_by, more, codec) or found
    return row_bytes


def _measured(df: DataFrame, sort_by: Sequence[str], rows: int, codec: str) -> tuple[float, float] | None:
    """Return the bytes of a row in a Parquet file and in memory; None if rows could not be fetched."""
    try:
        table = collect_arrow(first_rows(df, rows).coalesce(1).sortWithinPartitions(*map(f.expr, sort_by)))
        sink = io.BytesIO()
        pq.write_table(table, sink, compression=arrow_codec(codec))
    except Exception as exc:  # a type that Arrow cannot carry, or more than the driver takes
        _LOG.debug("%d rows could not be measured: %s", rows, exc)
        return None
    count = max(1, int(table.num_rows))
    return max(1.0, sink.tell() / count), max(1.0, table.nbytes / count)


def _width(data_type: t.DataType, unbounded: float | None) -> float:
    """Return a guess of a value's bytes, ``unbounded`` for each that may be of any width, if that is given."""
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
