"""Rows of a large query that lie on this machine's disk: placed piece by piece, and written file by file."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.disk import Place
from dbt_zorder.layout.compact import compacted, decimals
from dbt_zorder.layout.copied import Copied, Piece, in_scratch
from dbt_zorder.layout.fetched import FetchedKeys, distinct_partitions, folder_names
from dbt_zorder.layout.in_turn import in_turn
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.placing import Placing, Rows
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.layout.shares import Shares
from dbt_zorder.memory import memory_here
from dbt_zorder.table.arrow_files import ArrowWriter, by_folder, writing_to
from dbt_zorder.table.clock import tell
from dbt_zorder.table.held_rows import TELLING_ROWS, bytes_of, with_row_bytes

_LOG = logging.getLogger("dbt_zorder")

_SHARE_OF_MEMORY = 16
"""A part of the machine's memory that rows may take on their way, where that is more than ``zorder_in_memory``."""
_MOST_FILE = (1 << 31) - 1
"""Bytes of a file's rows in memory: offsets of text have 32 bits."""
_MOST_KEYS = 512 << 20
"""Bytes of what all rows are placed by, to plan by them: beyond, a sample serves as well."""
_TELLING_PIECES = 8
_ALONE = threading.Lock()
"""Who places and writes rows takes all processors, and the memory that there is for it."""
_CELL, _FOLDER = "cell", "folder"


@dataclass(frozen=True)
class CopiedRows:
    """All rows of a query, and how they are written.

    Attributes:
        copied: the rows.
        writer: of their files.
        keys: what rows are placed by.
        in_memory: bytes that they may take here at least.
    """

    copied: Copied
    writer: ArrowWriter
    keys: Sequence[Key]
    in_memory: int

    @cached_property
    def most_bytes(self) -> int:
        """Bytes that rows may take here on their way."""
        return max(self.in_memory, (memory_here() or 0) // _SHARE_OF_MEMORY)

    @property
    def key_bytes(self) -> int | None:
        """Bytes of what all rows are placed by, None where they are too many to plan by them."""
        size = self.copied.key_bytes(self.keys)
        return size if size <= min(_MOST_KEYS, self.most_bytes) else None

    @cached_property
    def _shortened(self) -> Mapping[str, pa.DataType]:
        return self.copied.shortened(self.keys)

    def fetch_keys(self) -> FetchedKeys:
        """Return what all rows are placed by."""
        with in_scratch(self.copied.folder):
            return self.copied.fetch_keys(self.keys, self.writer.threads)

    def write(self, spark: SparkSession, layout: Layout, path: str) -> bool:
        """Write the rows to a folder, one file each of the layout's that gets any.

        Returns:
            Whether they are written; if not, nothing is, and Spark is to write them.

        Raises:
            BuildError: the disk refused, or the folder lies elsewhere by now.
        """
        place = self.writer.place_of(spark, path)
        if self._is_too_much_for(layout):
            return self._left_to_spark()
        most, placing = self.most_bytes, Placing.by(layout)
        with _ALONE, Shares(most, self.copied.folder) as shares:
            folders = _Folders(spark, [part.name for part in self.copied.partition_by])
            try:
                self._share_out(placing, shares, folders)
            except UnicodeDecodeError:
                return self._left_to_spark("the name of a partition is no UTF-8")
            files = shares.files()
            # a tree's files are not all of one size
            if max(size for _, size in files) > min(2 * most, _MOST_FILE):
                return self._left_to_spark()
            self.copied.discard()
            with writing_to(place):
                self.writer.make_folders(place, folders.names)
                write = partial(self._write_file, shares, placing, folders.names, place, str(uuid.uuid4()))
                for _ in in_turn(write, files, most, self.writer.threads):
                    tell("write")
        return True

    def _is_too_much_for(self, layout: Layout) -> bool:
        """Tell whether a piece or a file, which are in memory twice for a moment, takes more of it than rows may."""
        largest = max(piece.nbytes for piece in self.copied.pieces)
        return max(2 * largest, self.copied.nbytes / layout.files) > self.most_bytes

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Let a spec know what a row takes on disk, roughly, where it asks for a size and nothing else tells."""
        return with_row_bytes(spec, self.copied.count, self.copied.nbytes, self._few, self.writer)

    def measured_row(self, layout: Layout, files: Sequence[int]) -> float | None:
        """Return the bytes that a row takes in some files of a layout, None if they have no rows."""
        if not files or self._is_too_much_for(layout):
            return None
        size = rows = 0
        placing = Placing.by(layout)
        with _ALONE, Shares(self.most_bytes, self.copied.folder) as shares:
            self._share_out(placing, shares, only=files)
            for file, _ in shares.files():
                found = shares.take(file)
                size += bytes_of(self._in_order(found, self._order(placing, found)), self.writer)
                rows += found.num_rows
        return size / rows if rows else None

    def _few(self) -> pa.Table:
        """Return some rows, drawn from pieces all over."""
        pieces = self.copied.pieces
        ends = np.cumsum([piece.rows for piece in pieces])
        # at equal distances by rows: pieces may be as small as a few of them
        middles = (np.arange(_TELLING_PIECES) + 0.5) * ends[-1] / _TELLING_PIECES
        chosen = [pieces[place] for place in np.unique(np.searchsorted(ends, middles, side="right")).tolist()]
        random = np.random.default_rng(0)
        few: list[pa.Table] = []
        with in_scratch(self.copied.folder):
            for piece in chosen:
                # not each third one, of which id % 6 would have two values
                some = np.sort(random.choice(piece.rows, min(TELLING_ROWS // len(chosen), piece.rows), replace=False))
                few.append(self._in_order(self.copied.read(piece), some))
        return pa.concat_tables(few)

    def _share_out(
        self, placing: Placing, shares: Shares, folders: _Folders | None = None, only: Sequence[int] | None = None
    ) -> None:
        """Send rows through a layout to their files, all or those of some files, for good or to measure them."""
        share = partial(self._share, placing, folders, only)
        pieces = ((piece, 2.0 * piece.nbytes) for piece in self.copied.pieces)
        with in_scratch(self.copied.folder):
            for rows, files in in_turn(share, pieces, self.most_bytes, self.writer.threads):
                shares.add(rows, files)
                tell("write" if only is None else "sample")

    def _share(
        self, placing: Placing, folders: _Folders | None, only: Sequence[int] | None, piece: Piece
    ) -> tuple[pa.Table, dict[int, slice]]:
        """Return rows in order of their files, with what tells their order in them, and where each file's lie."""
        found = self.copied.read(piece)
        cells = placing.cells(self.copied.keys_in(found, self.keys))
        order, files = placing.share_out(cells, piece.number, only)
        # as few bytes as will do: there are 32,768 cells at most, but for one of each of more files
        short = cells.astype(np.int32) if placing.count < 1 << 31 else cells
        rows = self._moved(found).append_column(_CELL, pa.array(short))
        if folders is not None and self.copied.partition_by:
            rows = rows.append_column(_FOLDER, pa.array(folders.of(self.copied.partitions_in(found))))
        return rows.take(pa.array(order)), files

    def _moved(self, found: pa.Table) -> pa.Table:
        """Return what goes into files of a piece, in as few bytes as it takes on its way."""
        columns = {name: found[name].combine_chunks() for name in self.copied.data_columns}
        for name in self._shortened:
            columns[name] = compacted(columns[name])
        return pa.table(columns)

    def _write_file(
        self, shares: Shares, placing: Placing, folders: Sequence[str], place: Place, job: str, file: int
    ) -> None:
        found = shares.take(file)
        order = self._order(placing, found)
        parts = [("", order)]
        if self.copied.partition_by:
            parts = by_folder(folders, found[_FOLDER].to_numpy()[order], order)
        for folder, rows in parts:
            self.writer.write_file(place, folder, file, job, self._in_order(found, rows))

    def _order(self, placing: Placing, found: pa.Table) -> Rows:
        return placing.order(self.copied.keys_in(found, self.keys), found[_CELL].to_numpy().astype(np.int64))

    def _in_order(self, found: pa.Table, order: Rows) -> pa.Table:
        """Return rows by the names of the query, column by column, so that no more than one is here twice."""
        chosen = pa.array(order)
        columns: dict[str, pa.Array] = {}
        for column, name in self.copied.data_columns.items():
            columns[name] = found[column].combine_chunks().take(chosen)
            kind = self._shortened.get(column)
            if kind is not None and columns[name].type != kind:
                columns[name] = decimals(columns[name], kind)
        return pa.table(columns)

    def _left_to_spark(self, why: str = "a file, or a part of the rows, takes too much of memory") -> bool:
        _LOG.debug("the rows are placed and written by Spark after all: %s", why)
        return False


class _Folders:
    """Folders of partitions as they come, by number."""

    def __init__(self, spark: SparkSession, columns: Sequence[str]) -> None:
        self.names: list[str] = []
        self._spark = spark
        self._columns = columns
        self._numbers: dict[tuple[str | None, ...], int] = {}
        self._lock = threading.Lock()

    def of(self, texts: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int32]:
        """Return the number of each row's folder, by the values of its partition as text."""
        distinct, of_row = distinct_partitions(texts, len(texts[0]) + 1)
        with self._lock:
            new = [one for one in distinct if one not in self._numbers]
            self._numbers.update({one: len(self.names) + number for number, one in enumerate(new)})
            self.names += folder_names(self._spark, self._columns, new)
            numbers = np.asarray([self._numbers[one] for one in distinct], dtype=np.int32)
        return numbers[of_row]
