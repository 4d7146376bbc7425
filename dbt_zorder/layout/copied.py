"""All rows of a query, written once to this machine's disk by Spark as they come, and read here piece by piece.

That takes what a shuffle takes to write alone, runs the query once, and bears any number of rows. Figures are in
docs/decisions/014.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, DateType, MapType, StructField, StructType, TimestampType

from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.layout.fetched import FetchedKeys, key_here, partition_sql
from dbt_zorder.layout.few import texts_of, width_of
from dbt_zorder.layout.keys import Key

_LOG = logging.getLogger("dbt_zorder")

_PIECE_BYTES = 16 << 20
"""Of a row group: so much is read, placed and shared out at a time in each thread."""
_OPTIONS = {
    "compression": "snappy",
    "maxRecordsPerFile": "0",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "parquet.block.size": str(_PIECE_BYTES),
    "parquet.enable.dictionary": "false",  # takes longer to write than the bytes that it spares
    "parquet.page.write-checksum.enabled": "false",
    "parquet.column.statistics.enabled": "false",
}
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
_ROWS = "rows"
_UNTOLD = 8
"""Bytes of a key that is no text: what ``Key.carrier`` takes at most, but for decimals."""


@dataclass(frozen=True)
class Piece:
    """A row group of the copy.

    Attributes:
        path: of its file.
        group: its number there.
        first: the number of its first row in the whole.
        rows: how many it has.
    """

    path: str
    group: int
    first: int
    rows: int


@dataclass(frozen=True)
class Copied:
    """The rows of a query on this machine's disk.

    Attributes:
        query: that was copied.
        rows: the copy as a query, with the same columns.
        folder: of this copy alone, which has room for other files.
        pieces: in the order in which the rows came.
        partition_by: columns that part the table, each a whole one.
    """

    query: DataFrame
    rows: DataFrame
    folder: str
    pieces: Sequence[Piece]
    partition_by: Sequence[ResolvedColumn]

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(piece.rows for piece in self.pieces)

    @cached_property
    def nbytes(self) -> int:
        """Bytes that all rows take in memory, roughly, if they are of types that ``width_of`` knows."""
        texts = texts_of(self.query.schema)
        numbers = width_of(StructType([field for field in self.query.schema.fields if field.name not in texts])) or 0
        return numbers * self.count + _text_bytes(self.pieces, [self.query.columns.index(name) for name in texts])

    def read(self, piece: Piece, columns: Sequence[int] | None = None) -> pa.Table:
        """Return the rows of a piece, or some of their columns by number.

        They are named ``c0``, ``c1``, ... in the order of the query's, and what tells their partition stands behind.
        """
        names = None if columns is None else [_name(column) for column in columns]
        with pq.ParquetFile(piece.path) as file:
            return file.read_row_group(piece.group, columns=names, use_threads=False)

    @property
    def data_columns(self) -> dict[str, str]:
        """Names of the columns that stand in files, which those are not that part the table: here, and in the query."""
        parts = {part.name for part in self.partition_by}
        return {_name(place): name for place, name in enumerate(self.query.columns) if name not in parts}

    def keys_in(self, rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
        """Return what some rows of the copy are placed by, as of ``FetchedKeys``, as far as their columns are there."""
        found = {
            f"k{n}": key_here(rows[_name(self._place(key.column))].combine_chunks(), key) for n, key in enumerate(keys)
        }
        hashed = _name(self._hash)
        if hashed in rows.column_names:
            found["p"] = rows[hashed].combine_chunks()
        return pa.table(found)

    def partitions_in(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the columns that part the table, as text."""
        return [rows[_name(len(self.query.columns) + place)] for place in range(len(self.partition_by))]

    def fetch_keys(self, keys: Sequence[Key], most_bytes: int, threads: int) -> FetchedKeys | None:
        """Return what all rows are placed by; None if that weighs more than ``most_bytes``."""
        wanted = sorted({self._place(key.column) for key in keys})
        texts = {self.query.columns.index(name) for name in texts_of(self.query.schema)}
        size = sum(16 if key.carrier.startswith("decimal") else _UNTOLD for key in keys) * self.count
        size += sum(_text_bytes(self.pieces, [place]) for place in wanted if place in texts)
        if size > most_bytes:
            return None
        behind = [self._hash] if self.partition_by else []
        with ThreadPoolExecutor(threads) as pool:
            tables = list(pool.map(lambda piece: self.read(piece, [*wanted, *behind]), self.pieces))
        return FetchedKeys(self.keys_in(pa.concat_tables(tables), keys))

    def discard(self) -> None:
        """Delete the copy, of which nothing is needed any more."""
        shutil.rmtree(f"{self.folder}/{_ROWS}", ignore_errors=True)

    @property
    def _hash(self) -> int:
        return len(self.query.columns) + len(self.partition_by)

    def _place(self, column: ResolvedColumn) -> int:
        return self.query.columns.index(column.name)


def can_copy(spark: SparkSession) -> bool:
    """Tell whether a session runs all of its tasks in one process on this machine, whose disk is ours."""
    context: Any = getattr(spark, "_jsc", None)
    return context is not None and bool(context.sc().isLocal())


def can_come_back(df: DataFrame, columns: Sequence[StructField] | None = None) -> bool:
    """Tell whether Parquet gives back each value of a query, or of some of its columns, as it was.

    Dates and times do only where Spark's writer does not ask which calendar old ones are meant by.
    """
    fields = df.schema.fields if columns is None else columns
    dates = str(df.sparkSession.conf.get(_CALENDAR)).upper() == "CORRECTED"
    return all(_comes_back(field.dataType, dates=dates) for field in fields)


def _comes_back(data_type: DataType, *, dates: bool) -> bool:
    if isinstance(data_type, ArrayType):
        return _comes_back(data_type.elementType, dates=dates)
    if isinstance(data_type, MapType):
        return _comes_back(data_type.keyType, dates=dates) and _comes_back(data_type.valueType, dates=dates)
    if isinstance(data_type, StructType):
        return bool(data_type.fields) and all(_comes_back(field.dataType, dates=dates) for field in data_type.fields)
    if isinstance(data_type, (DateType, TimestampType)) and not dates:
        return False
    return width_of(StructType([StructField("value", data_type)])) is not None


@contextlib.contextmanager
def copied(df: DataFrame, partition_by: Sequence[ResolvedColumn] = ()) -> Iterator[Copied | None]:
    """Copy the rows of a query for as long as the block runs.

    Gives None where this process does not see what Spark has written.

    Args:
        df: the query, in a session that ``can_copy``.
        partition_by: columns that part the table, each a whole one.
    """
    folder = tempfile.mkdtemp(prefix="zorder-", dir=_scratch())
    try:
        yield _copy(df, partition_by, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(df: DataFrame, partition_by: Sequence[ResolvedColumn], folder: str) -> Copied | None:
    path = Path(folder, _ROWS)
    behind = partition_sql(partition_by)
    # by numbers: a name may hold what Parquet's options, or another case, take for something else
    wanted = df.selectExpr("*", *behind).toDF(*map(_name, range(len(df.columns) + len(behind))))
    wanted.write.options(**_OPTIONS).parquet(path.as_uri())
    if not (path / "_SUCCESS").exists():
        _LOG.debug("Spark wrote the rows of a query to %s, where they cannot be seen from here", path)
        return None
    pieces: list[Piece] = []
    first = 0
    for file in sorted(path.glob("part-*.parquet")):
        groups = pq.read_metadata(file)
        for group in range(groups.num_row_groups):
            rows = groups.row_group(group).num_rows
            pieces.append(Piece(str(file), group, first, rows))
            first += rows
    schema = StructType([StructField(_name(n), field.dataType) for n, field in enumerate(df.schema.fields)])
    rows_again = df.sparkSession.read.schema(schema).parquet(path.as_uri())
    named = [f.col(_name(n)).alias(field.name, metadata=field.metadata) for n, field in enumerate(df.schema.fields)]
    return Copied(df, rows_again.select(*named), folder, pieces, partition_by)


def _text_bytes(pieces: Sequence[Piece], columns: Sequence[int]) -> int:
    """Return the bytes of some columns as they lie in Parquet pages without a dictionary, which is as in memory."""
    total = 0
    for path in dict.fromkeys(piece.path for piece in pieces):
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            one = metadata.row_group(group)
            total += sum(one.column(column).total_uncompressed_size for column in columns)
    return total


def _scratch() -> str | None:
    """Return Spark's own folder for what it writes on the way, which goes with the session; None if it has none."""
    folder = SparkFiles.getRootDirectory()
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None


def _name(column: int) -> str:
    return f"c{column}"
