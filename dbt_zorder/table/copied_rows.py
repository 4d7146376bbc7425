"""Rows of a large query that lie on this machine's disk: placed piece by piece, and written file by file."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dbt_zorder.disk import Place
from dbt_zorder.layout.compact import compacted, decimals
from dbt_zorder.layout.comparing import Rows
from dbt_zorder.layout.copied import Copied, Piece, in_scratch
from dbt_zorder.layout.fetched import FetchedKeys, distinct_partitions, folder_names
from dbt_zorder.layout.in_turn import in_turn
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.parts import Parts
from dbt_zorder.layout.placing import Placing
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.layout.shares import Shares
from dbt_zorder.memory import memory_here
from dbt_zorder.table.arrow_columns import Traits, telling
from dbt_zorder.table.arrow_files import GROUP_BYTES, ArrowWriter, by_folder, writing_to
from dbt_zorder.table.clock import tell
from dbt_zorder.table.held_rows import TELLING_ROWS, with_row_bytes
from dbt_zorder.table.share_files import ShareFile, files_of

_LOG = logging.getLogger("dbt_zorder")

_SHARE_OF_MEMORY = 16
"""A part of the machine's memory that rows may take on their way, where that is more than ``zorder_in_memory``."""
_MOST_FILE = (1 << 31) - 1
"""Bytes of a file's rows that are in memory at a time: offsets of text have 32 bits."""
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
        parts = self._parts(layout)
        if self._is_too_much_for(parts):
            return self._left_to_spark()
        most = self.most_bytes
        with _ALONE, Shares(most, self.copied.folder) as shares:
            folders = _Folders(spark, [part.name for part in self.copied.partition_by])
            try:
                self._share_out(parts, shares, folders)
            except UnicodeDecodeError:
                return self._left_to_spark("the name of a partition is no UTF-8")
            files = self._files(shares, parts)
            # a tree's parts are not all of one size
            if max(file.nbytes for file in files) > min(2 * most, _MOST_FILE):
                return self._left_to_spark()
            self.copied.discard()
            with writing_to(place):
                self.writer.make_folders(place, folders.names)
                write = partial(self._write_file, shares, parts.placing, folders.names, place, str(uuid.uuid4()))
                weighed = ((file, float(file.nbytes)) for file in files)
                for _ in in_turn(write, weighed, most, self.writer.threads):
                    tell("write")
        return True

    def _parts(self, layout: Layout) -> Parts:
        """Return how files are parted, if they are so large that they are written part by part."""
        placing, file_bytes = Placing.by(layout), self.copied.nbytes / layout.files
        if file_bytes <= self._group_bytes:
            return Parts(placing)
        return Parts.of(placing, file_bytes, self._some_keys)

    def _files(self, shares: Shares, parts: Parts) -> list[ShareFile]:
        return files_of(shares.sizes(), parts, self._group_bytes)

    @property
    def _group_bytes(self) -> int:
        """Bytes of rows that are sorted and written at a time, where a file has more."""
        return min(GROUP_BYTES, self.most_bytes)

    def _is_too_much_for(self, parts: Parts) -> bool:
        """Tell whether a piece or a part of a file, which are in memory twice for a moment, takes more than it may."""
        largest = max(piece.nbytes for piece in self.copied.pieces)
        return max(2 * largest, self.copied.nbytes / parts.placing.layout.files / parts.of_file) > self.most_bytes

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Let a spec know what a row takes on disk, roughly, where it asks for a size and nothing else tells."""
        return with_row_bytes(spec, self.copied.count, self.copied.nbytes, self._few, self.writer)

    def measured_row(self, layout: Layout, files: Sequence[int]) -> float | None:
        """Return the bytes that a row takes in some files of a layout, None if they have no rows."""
        if not files:
            return None
        parts = self._parts(layout)
        if self._is_too_much_for(parts):
            return None
        size = rows = 0
        with _ALONE, Shares(self.most_bytes, self.copied.folder) as shares:
            self._share_out(parts, shares, only=files)
            for file in self._files(shares, parts):
                for group in file.groups:
                    found = shares.take(group)
                    size += self.writer.size_of(self._in_order(found, self._order(parts.placing, found)))
                    rows += found.num_rows
        return size / rows if rows else None

    def _few(self) -> pa.Table:
        """Return some rows, drawn from pieces all over."""
        with in_scratch(self.copied.folder):
            return pa.concat_tables([self._in_order(self.copied.read(piece), some) for piece, some in self._drawn()])

    def _some_keys(self) -> pa.Table:
        """Return what some rows are placed by."""
        with in_scratch(self.copied.folder):
            drawn = [self.copied.read_keys(self.keys, piece).take(pa.array(some)) for piece, some in self._drawn()]
        return pa.concat_tables(drawn)

    def _drawn(self) -> Iterator[tuple[Piece, Rows]]:
        """Give some pieces, and in each some rows."""
        pieces = self.copied.pieces
        ends = np.cumsum([piece.rows for piece in pieces])
        # at equal distances by rows: pieces may be as small as a few of them
        middles = (np.arange(_TELLING_PIECES) + 0.5) * ends[-1] / _TELLING_PIECES
        chosen = [pieces[place] for place in np.unique(np.searchsorted(ends, middles, side="right")).tolist()]
        random = np.random.default_rng(0)
        for piece in chosen:
            # not each third one, of which id % 6 would have two values
            yield piece, np.sort(random.choice(piece.rows, min(TELLING_ROWS // len(chosen), piece.rows), replace=False))

    def _share_out(
        self, parts: Parts, shares: Shares, folders: _Folders | None = None, only: Sequence[int] | None = None
    ) -> None:
        """Send rows through a layout to their files, all or those of some files, for good or to measure them."""
        share = partial(self._share, parts, folders, only)
        pieces = ((piece, 2.0 * piece.nbytes) for piece in self.copied.pieces)
        with in_scratch(self.copied.folder):
            for rows, places in in_turn(share, pieces, self.most_bytes, self.writer.threads):
                shares.add(rows, places)
                tell("write" if only is None else "sample")

    def _share(
        self, parts: Parts, folders: _Folders | None, only: Sequence[int] | None, piece: Piece
    ) -> tuple[pa.Table, dict[int, slice]]:
        """Return rows in order of files and their parts, with what tells their order there, and where parts lie."""
        found, placing = self.copied.read(piece), parts.placing
        keys = self.copied.keys_in(found, self.keys)
        cells = placing.cells(keys)
        order, places = parts.share_out(keys, cells, piece.number, only)
        # as few bytes as will do: there are 32,768 cells at most, but for one of each of more files
        short = cells.astype(np.int32) if placing.count < 1 << 31 else cells
        rows = self._moved(found).append_column(_CELL, pa.array(short))
        if folders is not None and self.copied.partition_by:
            rows = rows.append_column(_FOLDER, pa.array(folders.of(self.copied.partitions_in(found))))
        return rows.take(pa.array(order)), places

    def _moved(self, found: pa.Table) -> pa.Table:
        """Return what goes into files of a piece, in as few bytes as it takes on its way."""
        columns = {name: found[name].combine_chunks() for name in self.copied.data_columns}
        for name in self._shortened:
            columns[name] = compacted(columns[name])
        return pa.table(columns)

    def _write_file(
        self, shares: Shares, placing: Placing, folders: Sequence[str], place: Place, job: str, file: ShareFile
    ) -> None:
        if len(file.groups) == 1:
            for folder, rows in self._by_folder(shares.take(file.groups[0]), placing, folders):
                self.writer.write_file(place, folder, file.number, job, rows)
            return
        opened: dict[str, pq.ParquetWriter] = {}
        with contextlib.ExitStack() as until_written:
            for group in file.groups:
                for folder, rows in self._by_folder(shares.take(group), placing, folders):
                    if folder not in opened:
                        traits = self._traits_of(rows, shares, file)
                        new = self.writer.new_file(place, folder, file.number, job, rows.schema, traits)
                        opened[folder] = until_written.enter_context(new)
                    opened[folder].write_table(rows, row_group_size=rows.num_rows)

    def _traits_of(self, first: pa.Table, shares: Shares, file: ShareFile) -> Traits:
        """Return what the columns of a file are like whose first rows these are."""
        traits = Traits.of(first, self.writer.page_rows, first.num_rows)
        told = {column: name for column, name in self.copied.data_columns.items() if name in telling(first.schema)}
        for group, size in zip(file.groups, file.sizes, strict=True):
            found = shares.take(group, list(told)).rename_columns(list(told.values()))
            traits = traits.beside(found, size.rows, size.nbytes // size.rows)
        return traits

    def _by_folder(self, found: pa.Table, placing: Placing, folders: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
        """Give rows in their order by the folders of their partitions, mostly one."""
        order = self._order(placing, found)
        parts = [("", order)]
        if self.copied.partition_by:
            parts = by_folder(folders, found[_FOLDER].to_numpy()[order], order)
        for folder, rows in parts:
            yield folder, self._in_order(found, rows)

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

    def _left_to_spark(self, why: str = "a part of a file, or of the rows, takes too much of memory") -> bool:
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
