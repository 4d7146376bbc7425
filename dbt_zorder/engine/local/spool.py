"""All rows of a query, written once to this machine's disk by Spark as they come, and read here piece by piece.

That takes what a shuffle takes to write alone, runs the query once, and bears any number of rows. Figures are in
docs/decisions/014.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DecimalType

from dbt_zorder.engine.local.fetched_keys import partition_sql
from dbt_zorder.engine.local.spool_arrow import BatchFiles, write_batches
from dbt_zorder.engine.local.spool_folder import column_name, in_scratch, scratch_folder
from dbt_zorder.engine.local.spool_parquet import Piece, RowFiles, write_rows
from dbt_zorder.layout.key_arrays import key_here
from dbt_zorder.layout.keys import TEXT, Key
from dbt_zorder.layout.known_keys import FetchedKeys
from dbt_zorder.layout.sample import drawn_rows, shares_of
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.decimals import can_compact

_LOG = logging.getLogger("dbt_zorder")

_ROWS, _BATCHES = "rows", "batches"
_UNTOLD = 8
"""Bytes of a key that is no text: what ``Key.carrier`` takes at most, but for decimals."""


@dataclass(frozen=True)
class Copied:
    """The rows of a query on this machine's disk.

    Attributes:
        query: that was copied.
        files: the copy.
        folder: of this copy alone, which has room for other files.
        partition_by: columns that part the table, each a whole one.
        whole: files have these, too, and an empty text is another partition than NULL.
    """

    query: DataFrame
    files: RowFiles | BatchFiles
    folder: str
    partition_by: Sequence[ResolvedColumn]
    whole: bool = False

    @property
    def rows(self) -> DataFrame:
        """The copy as a query with the same columns, which may all be NULL."""
        return self.files.frame

    @property
    def pieces(self) -> Sequence[Piece]:
        """Parts of rows that are of types that ``width_of`` knows, in the order in which they came."""
        return self.files.pieces

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
        return self.files.read(piece, columns)

    def read_compact(self, piece: Piece, names: Collection[str]) -> pa.Table:
        """Return the rows of a piece; some decimals, of those that are ``shortened``, as ``pack_decimals`` has them."""
        return self.files.read_compact(piece, names)

    @cached_property
    def data_columns(self) -> dict[str, str]:
        """Names of the columns that stand in files, here and in the query: those that part the table rarely do."""
        parts = set() if self.whole else {part.name for part in self.partition_by}
        return {column_name(place): name for place, name in enumerate(self.query.columns) if name not in parts}

    def shortened(self, keys: Sequence[Key]) -> dict[str, pa.DataType]:
        """Return the columns that are shorter while they are moved, and their types: decimals that place no row."""
        placing = {self._place(key.column) for key in keys}
        kinds = {
            column_name(place): pa.decimal128(field.dataType.precision, field.dataType.scale)
            for place, field in enumerate(self.query.schema.fields)
            if isinstance(field.dataType, DecimalType) and place not in placing
        }
        return {name: kind for name, kind in kinds.items() if name in self.data_columns and can_compact(kind)}

    def keys_in(self, rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
        """Return what some rows of the copy are placed by, as of ``FetchedKeys``, as far as their columns are there."""
        found = {f"k{n}": key_here(self._values(rows, key.column), key) for n, key in enumerate(keys)}
        hashed = column_name(self._hash)
        if hashed in rows.column_names:
            found["p"] = one_chunk(rows[hashed])
        return pa.table(found)

    def partitions_in(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the columns that part the table, as text."""
        return [rows[column_name(len(self.query.columns) + place)] for place in range(len(self.partition_by))]

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
        return self.read(piece, [*wanted, column_name(self._hash)] if self.partition_by else wanted)

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
        self.files.discard()

    @property
    def _hash(self) -> int:
        return len(self.query.columns) + len(self.partition_by)

    def _path(self, key: Key) -> str:
        """Return where a key's column, or the leaf of one, stands in files."""
        return ".".join((column_name(self._place(key.column)), *key.column.path[1:]))

    def _place(self, column: ResolvedColumn) -> int:
        return self.query.columns.index(column.path[0])

    def _values(self, rows: pa.Table, column: ResolvedColumn) -> pa.Array:
        """Return the values of a column or of a struct's leaf."""
        found = one_chunk(rows[column_name(self._place(column))])
        for part in column.path[1:]:
            found = pc.struct_field(found, found.type.get_field_index(part))
        return found


@contextlib.contextmanager
def copied(
    df: DataFrame,
    partition_by: Sequence[ResolvedColumn] = (),
    *,
    whole: bool = False,
    keys: Sequence[Key] | None = None,
) -> Iterator[Copied | None]:
    """Copy the rows of a query for as long as the block runs.

    Gives None where this process does not see what Spark has written.

    Args:
        df: the query, in a session that ``can_copy``.
        partition_by: columns that part the table, each a whole one.
        whole: files have these, too, and an empty text is another partition than NULL.
        keys: what rows are placed by, where they are read here, and the query is a plain scan: of the types that
            ``width_of`` knows, there is a shorter way than one that Spark reads as well; None for any other.
    """
    with scratch_folder() as folder:
        files: RowFiles | BatchFiles | None = None
        if keys is not None and not partition_by:
            wanted = {column_name(df.columns.index(key.column.path[0])) for key in keys}
            files = _without_long_text(write_batches(df, f"{folder}/{_BATCHES}", sorted(wanted)))
        files = files or write_rows(df, partition_sql(partition_by), f"{folder}/{_ROWS}")
        if files is None:
            _LOG.debug("Spark wrote the rows of a query to %s, where they cannot be seen from here", folder)
        yield None if files is None else Copied(df, files, folder, partition_by, whole)


def _without_long_text(files: BatchFiles | None) -> BatchFiles | None:
    if files is None:
        return None
    with in_scratch(files.folder):
        if not files.has_long_text:
            return files
    _LOG.debug("rows are copied once more, as Parquet: there is long text among them")
    files.discard()
    return None
