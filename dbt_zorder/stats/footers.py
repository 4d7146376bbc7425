"""Statistics of data files from their Parquet footers, where those say what reading the rows would.

Spark's own writer keeps bounds of whole numbers, decimals of up to 18 digits, dates, timestamps in microseconds,
booleans, text and binary, and the count of NULL of every leaf (parquet.thrift, ``Statistics``; the order of bounds is
``TYPE_ORDER``). They are exact, but for text and binary under ``parquet.statistics.truncate.length``, where they are
wider. Not so of other types: INT96 has no bounds, and what is said of NaN depends on the writer, so that floats are
read from the files if there are few of them (``stats.values``). Two bounds of more than 4,096 bytes together are left
out, and dates of a file in the Julian calendar are not what Spark reads back. Arrow's writer, by which small tables
are written, keeps the same ones as exactly, and leaves out a bound of more than 4,096 bytes by itself. Where one column
of one file is not of the exact kind, or another writer wrote it, the rows are read instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.spark.arrow import ARROW_TYPES, takes_arrow
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.stats.arrow_store import ARROW, VERSION_KEY, LocalStats
from dbt_zorder.stats.listing import data_files, local_file
from dbt_zorder.stats.schema import stats_schema
from dbt_zorder.stats.values import MOST_VALUES, Bounds, value_bounds

_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""Keys that Spark leaves in the footer of a file whose dates are to be moved to another calendar by its readers."""

_WRITERS = ("parquet-mr version ", f"{ARROW} version ")
"""Of files that also name a version of Spark: its own writer, and Arrow where we wrote them (``table.arrow_files``)."""

_PHYSICAL = {"BOOLEAN", "INT32", "INT64", "BYTE_ARRAY"}
"""How those types are stored; a decimal of fixed length is of the legacy format."""

_FLOATS = (pa.float32(), pa.float64())


class _InexactError(Exception):
    """A footer does not say exactly what the rows of its file would."""


def footer_stats(spark: SparkSession, path: str, columns: Sequence[ResolvedColumn], version: str) -> LocalStats | None:
    """Return the statistics of each file with rows below ``path`` in the shape of ``stats_schema``; no row is read.

    None where footers do not tell them exactly, where this process cannot open the files, and where this session makes
    no DataFrame of an Arrow table (PySpark 3.5 over Spark Connect).
    """
    # before files are listed for nothing
    if None in _arrow_types(columns) or not takes_arrow(spark) or not path.startswith(("/", "file:")):
        return None
    if has_jvm(spark) and on_disk(spark, path) is None:
        return None
    return stats_of_files(spark, data_files(spark, path), columns, version)


def stats_of_files(
    spark: SparkSession, sizes: Mapping[str, int], columns: Sequence[ResolvedColumn], version: str
) -> LocalStats | None:
    """Return the same of some files on this machine; None where footers do not tell it exactly.

    Args:
        spark: the session.
        sizes: bytes of each file by its path, as Spark spells it.
        columns: to return bounds of.
        version: what the rows say of the table's version.
    """
    types = _arrow_types(columns)
    if None in types:
        return None
    files = []
    floats = [number for number, kind in enumerate(types) if kind in _FLOATS]
    left = MOST_VALUES
    try:
        schema: pq.ParquetSchema | None = None
        places: list[int] = []
        for name, size in sizes.items():
            footer = _open(name, size)
            if schema is None or not footer.schema.equals(schema):  # nearly always that of the file before
                schema = footer.schema
                places = _places(schema, columns, types)
            if footer.num_rows:  # where reading rows finds none, there is no row of stats either
                files.append((name, size, int(footer.num_rows), _bounds_at(footer, places, floats)))
                left -= footer.num_rows * len(floats)
                if left < 0:
                    raise _InexactError
        if floats:
            paths = [columns[number].path for number in floats]
            for name, _, _, bounds in files:
                for number, read in zip(floats, value_bounds(local_file(name) or "", paths), strict=True):
                    bounds[number] = read
        per_column = [_column([file[3][number] for file in files], kind) for number, kind in enumerate(types)]
    except (_InexactError, OSError, ValueError, pa.ArrowException):
        return None
    rows = pa.table(
        {
            "file_path": pa.array([file[0] for file in files], pa.string()),
            "file_size": pa.array([file[1] for file in files], pa.int64()),
            "row_count": pa.array([file[2] for file in files], pa.int64()),
            "version": pa.array([version] * len(files), pa.string()),
            "columns": pa.StructArray.from_arrays(per_column, [column.name for column in columns]),
        }
    )
    return LocalStats(spark, rows, stats_schema({column.name: column.data_type for column in columns}))


def _arrow_types(columns: Sequence[ResolvedColumn]) -> list[pa.DataType | None]:
    return [_arrow_type(column.data_type) for column in columns]


def _arrow_type(data_type: t.DataType) -> pa.DataType | None:
    """Return what Arrow calls a column of this type in a file of Spark's; None if Spark is to read rows for it."""
    if isinstance(data_type, t.DecimalType) and data_type.precision <= 18:
        return pa.decimal128(data_type.precision, data_type.scale)
    return ARROW_TYPES.get(data_type.simpleString())


def _places(schema: pq.ParquetSchema, columns: Sequence[ResolvedColumn], types: Sequence[pa.DataType]) -> list[int]:
    """Return which leaf of a file each column is.

    Raises:
        _InexactError: it is none, more than one, or one of another type.
    """
    fields = pa.struct(list(schema.to_arrow_schema()))
    leaves: dict[str, list[int]] = {}
    for number in range(len(schema)):
        leaves.setdefault(schema.column(number).path, []).append(number)
    places = []
    for column, kind in zip(columns, types, strict=True):
        found = leaves.get(column.name, [])
        if len(found) != 1 or _type_in(fields, column) != kind:
            raise _InexactError
        places.append(found[0])
    return places


def _bounds_at(footer: pq.FileMetaData, places: Sequence[int], unread: Sequence[int]) -> list[Bounds]:
    """Return the bounds of some leaves as a footer tells them, none of those that are to be read.

    Raises:
        _InexactError: it does not tell them exactly.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        (None, None, 0) if number in unread else _bounds([group.column(place) for group in groups])
        for number, place in enumerate(places)
    ]


def _open(name: str, size: int) -> pq.FileMetaData:
    """Return the footer of the file that Spark lists by this name and size, if Spark's own writer wrote it, or we.

    Raises:
        _InexactError: another wrote it.
        OSError, ValueError, ArrowException: it cannot be read.
    """
    file = local_file(name)
    if file is None:
        raise _InexactError
    with open(file, "rb") as opened:
        if opened.seek(-8, os.SEEK_END) != size - 8:  # not the file that Spark has listed
            raise _InexactError
        length = int.from_bytes(opened.read(4), "little")
    footer = pq.read_metadata(file)
    # longer by its signature where columns are encrypted: Arrow ends the process when it is asked for one of those
    if length != footer.serialized_size:
        raise _InexactError
    told = footer.metadata or {}
    ours = VERSION_KEY.encode() in told and str(footer.created_by).startswith(_WRITERS)
    if not ours or any(key in told for key in _LEGACY):
        raise _InexactError
    return footer


def _type_in(fields: pa.StructType, column: ResolvedColumn) -> pa.DataType | None:
    here: pa.DataType = fields
    for part in column.path:
        index = here.get_field_index(part) if pa.types.is_struct(here) else -1
        if index < 0:
            return None
        here = here.field(index).type
    return here


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData]) -> Bounds:
    """Return what one file's row groups tell of a column, as one."""
    lows, highs, nulls = [], [], 0
    for chunk in chunks:
        told = chunk.statistics if chunk.is_stats_set else None
        if told is None or not told.has_null_count or chunk.physical_type not in _PHYSICAL:
            raise _InexactError
        nulls += told.null_count
        if told.has_min_max:
            lows.append(told.min_raw)
            highs.append(told.max_raw)
        elif told.null_count != chunk.num_values:
            raise _InexactError
    return min(lows, default=None), max(highs, default=None), nulls


def _column(files: Sequence[Bounds], kind: pa.DataType) -> pa.Array:
    lows, highs = (_values([file[side] for file in files], kind) for side in (0, 1))
    nulls = pa.array([file[2] for file in files], pa.int64())
    return pa.StructArray.from_arrays([lows, highs, nulls], ["min_value", "max_value", "null_count"])


def _values(raw: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([None if one is None else Decimal(one).scaleb(-kind.scale) for one in raw], kind)
    if pa.types.is_string(kind):
        return pa.array(raw, pa.binary()).cast(kind)
    if pa.types.is_date(kind):
        return pa.array(raw, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(raw, pa.int64()).cast(kind)
    return pa.array(raw, kind)
