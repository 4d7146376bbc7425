"""Read statistics of data files from their Parquet footers, where those are as exact as the rows.

Spark's own writer stores bounds of integers, decimals up to 18 digits, dates, timestamps in microseconds, booleans,
text and binary. It stores the null_count of every leaf (parquet.thrift, ``Statistics``; the order of bounds is
``TYPE_ORDER``). All are exact, except that text and binary bounds may be wider under
``parquet.statistics.truncate.length``.

Other types are not exact:

- INT96 has no bounds.
- Bounds of NaN depend on the writer. If there are few floats, they are read from the files (``stats.values``).
- Two bounds of more than 4,096 bytes together are left out.
- Dates of a file in the Julian calendar are not the dates that Spark reads back.

Arrow's writer, which writes small tables, stores the same bounds as exactly. It leaves out each single bound of more
than 4,096 bytes. If one column of one file is not exact, or another writer wrote the file, the rows are read instead.
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
"""Footer keys of Spark for a file whose dates its readers must move to another calendar."""

_WRITERS = ("parquet-mr version ", f"{ARROW} version ")
"""Writers of files that also name a version of Spark: Spark's own, and Arrow in this process."""

_PHYSICAL = {"BOOLEAN", "INT32", "INT64", "BYTE_ARRAY"}
"""The physical types of exact bounds; a decimal of fixed length comes from the legacy format."""

_FLOATS = (pa.float32(), pa.float64())


class _InexactError(Exception):
    """A footer's statistics may differ from those of the file's rows."""


def footer_stats(spark: SparkSession, path: str, columns: Sequence[ResolvedColumn], version: str) -> LocalStats | None:
    """Return the statistics of each non-empty file below ``path`` in the shape of ``stats_schema``; read no row.

    Return None where footers are not exact or this process cannot open the files. Also return None where this session
    cannot make a DataFrame from an Arrow table (PySpark 3.5 over Spark Connect).
    """
    # checked first, to save the listing of files
    if None in _arrow_types(columns) or not takes_arrow(spark) or not path.startswith(("/", "file:")):
        return None
    if has_jvm(spark) and on_disk(spark, path) is None:
        return None
    return stats_of_files(spark, data_files(spark, path), columns, version)


def stats_of_files(
    spark: SparkSession, sizes: Mapping[str, int], columns: Sequence[ResolvedColumn], version: str
) -> LocalStats | None:
    """Return the same for files on this machine; None where footers are not exact.

    Args:
        spark: the session.
        sizes: the bytes of each file, by its path as Spark spells it.
        columns: the columns whose bounds are returned.
        version: the value of the column ``version``.
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
            if schema is None or not footer.schema.equals(schema):  # nearly all files share one schema
                schema = footer.schema
                places = _places(schema, columns, types)
            if footer.num_rows:  # an aggregate over the rows returns no row for an empty file
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
    """Return Arrow's type of a column in a file of Spark's; None if Spark must read its rows."""
    if isinstance(data_type, t.DecimalType) and data_type.precision <= 18:
        return pa.decimal128(data_type.precision, data_type.scale)
    return ARROW_TYPES.get(data_type.simpleString())


def _places(schema: pq.ParquetSchema, columns: Sequence[ResolvedColumn], types: Sequence[pa.DataType]) -> list[int]:
    """Return the leaf number of each column in a file.

    Raises:
        _InexactError: a column has no leaf, several leaves, or a leaf of another type.
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
    """Return the bounds of leaves from a footer, and empty bounds for leaves that are read later.

    Raises:
        _InexactError: the footer is not exact.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        (None, None, 0) if number in unread else _bounds([group.column(place) for group in groups])
        for number, place in enumerate(places)
    ]


def _open(name: str, size: int) -> pq.FileMetaData:
    """Return the footer of a listed file, if Spark's own writer or this process wrote it.

    Raises:
        _InexactError: another writer wrote it, or it is not the listed file.
        OSError, ValueError, ArrowException: it cannot be read.
    """
    file = local_file(name)
    if file is None:
        raise _InexactError
    if os.path.getsize(file) != size:  # not the file that Spark listed
        raise _InexactError
    footer = pq.read_metadata(file)
    if not is_plain(file, footer):
        raise _InexactError
    entries = footer.metadata or {}
    ours = VERSION_KEY.encode() in entries and str(footer.created_by).startswith(_WRITERS)
    if not ours or any(key in entries for key in _LEGACY):
        raise _InexactError
    return footer


def is_plain(file: str, footer: pq.FileMetaData) -> bool:
    """Return whether a file has no encrypted column, on whose statistics Arrow aborts the process.

    A signature lengthens the footer of encrypted files beyond the length that the last bytes of the file give.
    """
    with open(file, "rb") as opened:
        opened.seek(-8, os.SEEK_END)
        return int.from_bytes(opened.read(4), "little") == int(footer.serialized_size)


def _type_in(fields: pa.StructType, column: ResolvedColumn) -> pa.DataType | None:
    here: pa.DataType = fields
    for part in column.path:
        index = here.get_field_index(part) if pa.types.is_struct(here) else -1
        if index < 0:
            return None
        here = here.field(index).type
    return here


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData]) -> Bounds:
    """Combine the statistics of a column over the row groups of one file."""
    lows, highs, nulls = [], [], 0
    for chunk in chunks:
        stats = chunk.statistics if chunk.is_stats_set else None
        if stats is None or not stats.has_null_count or chunk.physical_type not in _PHYSICAL:
            raise _InexactError
        nulls += stats.null_count
        if stats.has_min_max:
            lows.append(stats.min_raw)
            highs.append(stats.max_raw)
        elif stats.null_count != chunk.num_values:
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
