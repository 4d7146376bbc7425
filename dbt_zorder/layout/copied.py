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
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import SparkFiles
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DecimalType, StructField, StructType

from dbt_zorder.arrow import one_chunk
from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.compact import can_compact
from dbt_zorder.layout.fetched import FetchedKeys, key_here, partition_sql
from dbt_zorder.layout.few import inner_types, texts_of, width_of
from dbt_zorder.layout.keys import TEXT, Key
from dbt_zorder.layout.sample import drawn_rows, shares_of
from dbt_zorder.sql import glob_escape

_LOG = logging.getLogger("dbt_zorder")

_PIECE_BYTES = 16 << 20
"""Of a row group as it lies on disk, and in memory where it has no text: so much is read, placed and shared out at a
time in each thread."""
_OPTIONS = {
    "compression": "snappy",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.output.basename": "part",
    "parquet.block.size": str(_PIECE_BYTES),
    "parquet.enable.dictionary": "false",  # takes longer to write than the bytes that it spares
    "parquet.page.write-checksum.enabled": "false",
    "parquet.column.statistics.enabled": "false",
}
_ROWS, _NAME = "rows", "c"
_ABSENT = 4
"""Bytes that a nested value takes at least, be it NULL, or an empty array's."""
_UNTOLD = 8
"""Bytes of a key that is no text: what ``Key.carrier`` takes at most, but for decimals."""


@dataclass(frozen=True)
class Piece:
    """A row group of the copy.

    Attributes:
        path: of its file.
        group: its number there.
        number: among all pieces, in the order in which their rows came.
        rows: how many it has.
        nbytes: that they take in memory, roughly.
        long: the same of each column, or leaf of one, whose values are of any length, by its path in the file: text,
            and all that is nested.
    """

    path: str
    group: int
    number: int
    rows: int
    nbytes: int
    long: Mapping[str, int]


@dataclass(frozen=True)
class Copied:
    """The rows of a query on this machine's disk.

    Attributes:
        query: that was copied.
        rows: the copy as a query, with the same columns, which may all be NULL.
        folder: of this copy alone, which has room for other files.
        partition_by: columns that part the table, each a whole one.
        whole: files have these, too, and an empty text is another partition than NULL.
    """

    query: DataFrame
    rows: DataFrame
    folder: str
    partition_by: Sequence[ResolvedColumn]
    whole: bool = False

    @cached_property
    def pieces(self) -> Sequence[Piece]:
        """Row groups of rows that are of types that ``width_of`` knows, in the order in which they came."""
        fields = dict(enumerate(self.query.schema.fields))
        texts = texts_of(self.query.schema)
        long = {place for place, field in fields.items() if field.name in texts or inner_types(field.dataType)}
        width = width_of(StructType([field for place, field in fields.items() if place not in long])) or 0
        pieces: list[Piece] = []
        for file in sorted(_files(self.folder)):
            metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                one = metadata.row_group(group)
                sizes = _long_bytes(one, long)
                size = one.num_rows * width + sum(sizes.values())
                pieces.append(Piece(file, group, len(pieces), one.num_rows, size, sizes))
        return pieces

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def nbytes(self) -> int:
        """Bytes that all rows take in memory, roughly."""
        return sum(piece.nbytes for piece in self.pieces)

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a piece, or some of their columns.

        They are named ``c0``, ``c1``, ... in the order of the query's, and what tells their partition stands behind. Of
        a struct one may ask for a leaf: ``c0.id``.
        """
        with pq.ParquetFile(piece.path) as file:
            return file.read_row_group(piece.group, columns=columns, use_threads=False)

    @cached_property
    def data_columns(self) -> dict[str, str]:
        """Names of the columns that stand in files, here and in the query: those that part the table rarely do."""
        parts = set() if self.whole else {part.name for part in self.partition_by}
        return {_name(place): name for place, name in enumerate(self.query.columns) if name not in parts}

    def shortened(self, keys: Sequence[Key]) -> dict[str, pa.DataType]:
        """Return the columns that are shorter while they are moved, and their types: decimals that place no row."""
        placing = {self._place(key.column) for key in keys}
        kinds = {
            _name(place): pa.decimal128(field.dataType.precision, field.dataType.scale)
            for place, field in enumerate(self.query.schema.fields)
            if isinstance(field.dataType, DecimalType) and place not in placing
        }
        return {name: kind for name, kind in kinds.items() if name in self.data_columns and can_compact(kind)}

    def keys_in(self, rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
        """Return what some rows of the copy are placed by, as of ``FetchedKeys``, as far as their columns are there."""
        found = {f"k{n}": key_here(self._values(rows, key.column), key) for n, key in enumerate(keys)}
        hashed = _name(self._hash)
        if hashed in rows.column_names:
            found["p"] = one_chunk(rows[hashed])
        return pa.table(found)

    def partitions_in(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the columns that part the table, as text."""
        return [rows[_name(len(self.query.columns) + place)] for place in range(len(self.partition_by))]

    def fetch_keys(self, keys: Sequence[Key], threads: int) -> FetchedKeys:
        """Return what all rows are placed by."""
        with ThreadPoolExecutor(threads) as pool:
            tables = list(pool.map(lambda piece: self._read_for(piece, keys), self.pieces))
        return FetchedKeys(self.keys_in(pa.concat_tables(tables), keys))

    def read_keys(self, keys: Sequence[Key], piece: Piece) -> pa.Table:
        """Return what the rows of a piece are placed by."""
        return self.keys_in(self._read_for(piece, keys), keys)

    def _read_for(self, piece: Piece, keys: Sequence[Key]) -> pa.Table:
        wanted = list(map(self._path, keys))
        return self.read(piece, [*wanted, _name(self._hash)] if self.partition_by else wanted)

    def draw_keys(self, keys: Sequence[Key], rows: int, seed: int, threads: int) -> FetchedKeys:
        """Return the same of some rows alone, text of them as ``FetchedKeys.sampled`` has it; see ``DrawnKeys``."""
        shares = shares_of([piece.rows for piece in self.pieces], rows, seed)

        def some(piece: Piece, share: int) -> pa.Table:
            drawn = drawn_rows(piece.rows, share, seed + piece.number)
            taken = self._read_for(piece, keys).take(pa.array(drawn))
            return FetchedKeys(self.keys_in(taken, keys)).sampled

        with ThreadPoolExecutor(threads) as pool:
            return FetchedKeys(pa.concat_tables(pool.map(some, self.pieces, shares)))

    def text_bytes(self, keys: Sequence[Key]) -> int:
        """Return how many bytes a key of text takes in the mean, roughly; 0 where none is text."""
        texts = [self._path(key) for key in keys if key.carrier in TEXT]
        size = sum(piece.long.get(path, 0) for piece in self.pieces for path in texts)
        return -(-size // (len(texts) * self.count)) if size else 0

    def key_bytes(self, keys: Sequence[Key]) -> int:
        """Return how much of memory that takes, roughly."""
        wanted = set(map(self._path, keys))
        size = sum(16 if key.carrier.startswith("decimal") else _UNTOLD for key in keys) + _UNTOLD
        return size * self.count + sum(piece.long.get(path, 0) for piece in self.pieces for path in wanted)

    def discard(self) -> None:
        """Delete the copy, of which nothing is needed any more."""
        shutil.rmtree(f"{self.folder}/{_ROWS}", ignore_errors=True)

    @property
    def _hash(self) -> int:
        return len(self.query.columns) + len(self.partition_by)

    def _path(self, key: Key) -> str:
        """Return where a key's column, or the leaf of one, stands in files."""
        return ".".join((_name(self._place(key.column)), *key.column.path[1:]))

    def _place(self, column: ResolvedColumn) -> int:
        return self.query.columns.index(column.path[0])

    def _values(self, rows: pa.Table, column: ResolvedColumn) -> pa.Array:
        """Return the values of a column or of a struct's leaf."""
        found = one_chunk(rows[_name(self._place(column))])
        for part in column.path[1:]:
            found = pc.struct_field(found, found.type.get_field_index(part))
        return found


@contextlib.contextmanager
def in_scratch(folder: str | None) -> Iterator[None]:
    """Let a block that reads and writes what lies in Spark's folder for that fail with a sentence.

    Raises:
        BuildError: the disk refused.
    """
    try:
        yield
    except OSError as exc:
        place = folder or tempfile.gettempdir()
        msg = f"Rows on their way to the table could not be kept in {place}: {exc}. spark.local.dir says where that is."
        raise BuildError(msg) from exc


@contextlib.contextmanager
def copied(
    df: DataFrame, partition_by: Sequence[ResolvedColumn] = (), *, whole: bool = False
) -> Iterator[Copied | None]:
    """Copy the rows of a query for as long as the block runs.

    Gives None where this process does not see what Spark has written.

    Args:
        df: the query, in a session that ``can_copy``.
        partition_by: columns that part the table, each a whole one.
        whole: files have these, too, and an empty text is another partition than NULL.
    """
    scratch = _scratch()
    with in_scratch(scratch):
        folder = tempfile.mkdtemp(prefix="zorder-", dir=scratch)
    try:
        yield _copy(df, partition_by, folder, whole=whole)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(df: DataFrame, partition_by: Sequence[ResolvedColumn], folder: str, *, whole: bool) -> Copied | None:
    behind = partition_sql(partition_by)
    # by numbers: a name may hold what Parquet's options, or another case, take for something else
    wanted = df.selectExpr("*", *behind).toDF(*map(_name, range(len(df.columns) + len(behind))))
    # what is NULL or repeats takes no room on disk, and as much in memory as all else
    most_rows = _PIECE_BYTES // (width_of(df.schema, nested=True) or _PIECE_BYTES)
    wanted.write.options(**_OPTIONS, maxRecordsPerFile=most_rows if most_rows > 1 else 0).parquet(_uri(folder))
    if not _files(folder):
        _LOG.debug("Spark wrote the rows of a query to %s, where they cannot be seen from here", folder)
        return None
    schema = StructType([StructField(_name(n), field.dataType) for n, field in enumerate(df.schema.fields)])
    rows = df.sparkSession.read.schema(schema).parquet(glob_escape(_uri(folder)))
    named = [f.col(_name(n)).alias(field.name, metadata=field.metadata) for n, field in enumerate(df.schema.fields)]
    return Copied(df, rows.select(*named), folder, partition_by, whole)


def _long_bytes(group: pq.RowGroupMetaData, places: Collection[int]) -> dict[str, int]:
    """Return what some columns of a row group, by their number, take in memory, roughly: by path of each leaf."""
    sizes: dict[str, int] = {}
    for leaf in map(group.column, range(group.num_columns if places else 0)):
        top, *below = leaf.path_in_schema.split(".")
        place = int(top.removeprefix(_NAME))
        if place in places:
            # in Parquet's pages, without a dictionary, text takes what it takes in memory; where a nested value is not,
            # Arrow has room for it or says so
            sizes[leaf.path_in_schema] = leaf.total_uncompressed_size + (_ABSENT * leaf.num_values if below else 0)
    return sizes


def _uri(folder: str) -> str:
    """Return where the rows are, as Hadoop takes it: it knows no percent signs for other characters."""
    path = Path(folder, _ROWS).as_posix()
    return f"file://{path}" if path.startswith("/") else f"file:///{path}"


def _files(folder: str) -> list[str]:
    path = Path(folder, _ROWS)
    return [str(file) for file in path.glob("*.parquet")] if (path / "_SUCCESS").exists() else []


def _scratch() -> str | None:
    """Return Spark's own folder for what it writes on the way, which goes with the session; None if it has none."""
    folder = SparkFiles.getRootDirectory()
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None


def _name(column: int) -> str:
    return f"{_NAME}{column}"
