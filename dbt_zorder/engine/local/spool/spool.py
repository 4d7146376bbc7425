"""Spools all rows of a query to the local disk: Spark writes them once, and this process reads them chunk by chunk.

The cost is that of the write of a shuffle alone. The query runs once, and may have any number of rows. Figures are in
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
from dbt_zorder.engine.local.spool.arrow_files import BatchFiles, write_batches
from dbt_zorder.engine.local.spool.folder import column_name, new_spool_folder, spool_errors
from dbt_zorder.engine.local.spool.parquet_files import Chunk, RowFiles, write_row_files
from dbt_zorder.layout.key_arrays import key_values
from dbt_zorder.layout.keys import TEXT, Key
from dbt_zorder.layout.known_keys import FetchedKeys
from dbt_zorder.layout.sample import random_rows, sample_shares
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.decimals import can_compact

_LOG = logging.getLogger("dbt_zorder")

_ROWS, _BATCHES = "rows", "batches"
_FIXED_KEY_BYTES = 8
"""Bytes of a key that is not text: the maximum for any ``Key.carrier`` except decimals."""


@dataclass(frozen=True)
class Spool:
    """The rows of a query on the local disk.

    Attributes:
        query: query that was spooled.
        files: files of the rows.
        folder: folder of this spool alone, which may contain other files.
        partition_by: partition columns of the table, each a top-level column.
        whole: whether files contain the partition columns, and an empty text is another partition than NULL.
    """

    query: DataFrame
    files: RowFiles | BatchFiles
    folder: str
    partition_by: Sequence[ResolvedColumn]
    whole: bool = False

    @property
    def rows(self) -> DataFrame:
        """Return a query over the spooled rows with the same columns, all nullable."""
        return self.files.frame

    @property
    def chunks(self) -> Sequence[Chunk]:
        """Return the chunks in the order in which their rows came; ``estimated_row_bytes`` must support all types."""
        return self.files.chunks

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def nbytes(self) -> int:
        """Return the approximate bytes of all rows in memory."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def read(self, chunk: Chunk, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a chunk, or only the given columns.

        Columns are named ``c0``, ``c1``, ... in the order of the query's, followed by the partition values and their
        hash. A column may be the leaf of a struct: ``c0.id``.
        """
        return self.files.read(chunk, columns)

    def read_compact(self, chunk: Chunk, names: Collection[str]) -> pa.Table:
        """Return the rows of a chunk; the named decimals, all ``shortened``, are packed as by ``pack_decimals``."""
        return self.files.read_compact(chunk, names)

    @cached_property
    def data_columns(self) -> dict[str, str]:
        """Return the query's name of each column that files contain; partition columns are rarely among them."""
        parts = set() if self.whole else {part.name for part in self.partition_by}
        return {column_name(place): name for place, name in enumerate(self.query.columns) if name not in parts}

    def shortened(self, keys: Sequence[Key]) -> dict[str, pa.DataType]:
        """Return the types of the columns that are shorter during the shuffle: decimals that are not keys."""
        key_places = {self._place(key.column) for key in keys}
        kinds = {
            column_name(place): pa.decimal128(field.dataType.precision, field.dataType.scale)
            for place, field in enumerate(self.query.schema.fields)
            if isinstance(field.dataType, DecimalType) and place not in key_places
        }
        return {name: kind for name, kind in kinds.items() if name in self.data_columns and can_compact(kind)}

    def keys_in(self, rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
        """Return the keys of spooled rows in the form of ``FetchedKeys``, if their columns are present."""
        found = {f"k{n}": key_values(self._values(rows, key.column), key) for n, key in enumerate(keys)}
        hashed = column_name(self._hash)
        if hashed in rows.column_names:
            found["p"] = one_chunk(rows[hashed])
        return pa.table(found)

    def partitions_in(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of the partition columns as text."""
        return [rows[column_name(len(self.query.columns) + place)] for place in range(len(self.partition_by))]

    def fetch_keys(self, keys: Sequence[Key], threads: int) -> FetchedKeys:
        """Return the keys of all rows."""
        with ThreadPoolExecutor(threads) as pool:
            tables = list(pool.map(lambda chunk: self._read_for(chunk, keys), self.chunks))
        return FetchedKeys(self.keys_in(pa.concat_tables(tables), keys))

    def read_keys(self, keys: Sequence[Key], chunk: Chunk) -> pa.Table:
        """Return the keys of a chunk's rows."""
        return self.keys_in(self._read_for(chunk, keys), keys)

    def _read_for(self, chunk: Chunk, keys: Sequence[Key]) -> pa.Table:
        wanted = list(map(self._path, keys))
        return self.read(chunk, [*wanted, column_name(self._hash)] if self.partition_by else wanted)

    def draw_keys(self, keys: Sequence[Key], rows: int, seed: int, threads: int) -> FetchedKeys:
        """Return the keys of sampled rows, with text as in ``FetchedKeys.sampled``; see ``DrawnKeys``."""
        shares = sample_shares([chunk.rows for chunk in self.chunks], rows, seed)

        def some(chunk: Chunk, share: int) -> pa.Table:
            drawn = random_rows(chunk.rows, share, seed + chunk.number)
            taken = self._read_for(chunk, keys).take(pa.array(drawn))
            return FetchedKeys(self.keys_in(taken, keys)).sampled

        with ThreadPoolExecutor(threads) as pool:
            return FetchedKeys(pa.concat_tables(pool.map(some, self.chunks, shares)))

    def text_bytes(self, keys: Sequence[Key]) -> int:
        """Return the approximate mean bytes of a text key; 0 if no key is text."""
        texts = [self._path(key) for key in keys if key.carrier in TEXT]
        size = sum(chunk.long.get(path, 0) for chunk in self.chunks for path in texts)
        return -(-size // (len(texts) * self.count)) if size else 0

    def key_bytes(self, keys: Sequence[Key]) -> int:
        """Return the approximate bytes of all keys in memory."""
        wanted = set(map(self._path, keys))
        size = sum(16 if key.carrier.startswith("decimal") else _FIXED_KEY_BYTES for key in keys) + _FIXED_KEY_BYTES
        return size * self.count + sum(chunk.long.get(path, 0) for chunk in self.chunks for path in wanted)

    def discard(self) -> None:
        """Delete the files, once no row is needed any more."""
        self.files.discard()

    @property
    def _hash(self) -> int:
        return len(self.query.columns) + len(self.partition_by)

    def _path(self, key: Key) -> str:
        """Return the path of a key's column, or of its struct leaf, in the files."""
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
def spool_rows(
    df: DataFrame,
    partition_by: Sequence[ResolvedColumn] = (),
    *,
    whole: bool = False,
    keys: Sequence[Key] | None = None,
) -> Iterator[Spool | None]:
    """Spool the rows of a query for the duration of the block.

    Yields None if this process cannot see the files that Spark wrote.

    Args:
        df: query, in a session that ``can_spool``.
        partition_by: partition columns of the table, each a top-level column.
        whole: whether files contain the partition columns, and an empty text is another partition than NULL.
        keys: keys that place the rows, if this process reads them and the query is a plain scan. Types that
            ``estimated_row_bytes`` supports can then be spooled faster than as Parquet. None for any other query.
    """
    with new_spool_folder() as folder:
        files: RowFiles | BatchFiles | None = None
        if keys is not None and not partition_by:
            wanted = {column_name(df.columns.index(key.column.path[0])) for key in keys}
            files = _without_long_text(write_batches(df, f"{folder}/{_BATCHES}", sorted(wanted)))
        files = files or write_row_files(df, partition_sql(partition_by), f"{folder}/{_ROWS}")
        if files is None:
            _LOG.debug("Spark wrote the rows of a query to %s, where they cannot be seen from here", folder)
        yield None if files is None else Spool(df, files, folder, partition_by, whole)


def _without_long_text(files: BatchFiles | None) -> BatchFiles | None:
    if files is None:
        return None
    with spool_errors(files.folder):
        if not files.has_long_text:
            return files
    _LOG.debug("rows are copied once more, as Parquet: there is long text among them")
    files.discard()
    return None
