"""Places the rows of a spooled query chunk by chunk, and writes them file by file."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.fetched_keys import distinct_partitions
from dbt_zorder.engine.local.file_writer import FileWriter
from dbt_zorder.engine.local.output_files import OutputFile, files_of
from dbt_zorder.engine.local.pipeline import ordered_map
from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.local.row_groups import RowGroups
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.engine.local.small_table import SAMPLE_ROWS
from dbt_zorder.engine.local.spool.folder import spool_errors
from dbt_zorder.engine.local.spool.parquet_files import Chunk
from dbt_zorder.engine.local.spool.spool import Spool
from dbt_zorder.engine.parquet.writer import GROUP_BYTES, ArrowWriter, writing_to
from dbt_zorder.engine.row_bytes import DataSize, with_sampled_row_bytes
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import DrawnKeys, FetchedKeys
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.partitions import NamelessError, folder_names
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.progress import report_phase
from dbt_zorder.spark.memory import memory_here

_LOG = logging.getLogger("dbt_zorder")

_MEMORY_DIVISOR = 16
"""Divides the machine's memory into the bytes that rows may occupy, if that is more than ``zorder_in_memory``."""
_MAX_FILE_BYTES = (1 << 31) - 1
"""Limit for the bytes of a file's rows in memory at a time: offsets of text have 32 bits."""
_MAX_KEY_BYTES = 512 << 20
"""Limit for the bytes of all keys when planning; beyond it, a sample serves as well."""
_SAMPLE_CHUNKS = 8
_BUILD_LOCK = threading.Lock()
"""Serializes builds: placing and writing rows uses all processors and the whole memory limit."""


@dataclass(frozen=True)
class SpooledRows:
    """All rows of a query, on the local disk.

    Attributes:
        spool: spooled rows.
        writer: writer of the files.
        keys: keys that place the rows.
        in_memory: minimum for the limit of bytes in memory.
    """

    spool: Spool
    writer: ArrowWriter
    keys: Sequence[Key]
    in_memory: int

    @cached_property
    def most_bytes(self) -> int:
        """Return the limit for the bytes of rows in memory."""
        return max(self.in_memory, (memory_here() or 0) // _MEMORY_DIVISOR)

    @cached_property
    def _shuffled(self) -> ShuffledRows:
        return ShuffledRows(self.spool, self.keys)

    @property
    def key_bytes(self) -> int | None:
        """Return the bytes of all keys, None if they are too many to plan by."""
        size = self.spool.key_bytes(self.keys)
        return size if size <= min(_MAX_KEY_BYTES, self.most_bytes) else None

    def fetch_keys(self) -> FetchedKeys:
        """Return the keys of all rows."""
        with spool_errors(self.spool.folder):
            return self.spool.fetch_keys(self.keys, self.writer.threads)

    @property
    def drawn_keys(self) -> DrawnKeys:
        """Return a reader of as many keys as a plan asks for."""
        return DrawnKeys(self.spool.count, self.spool.text_bytes(self.keys), self._draw_keys)

    def _draw_keys(self, rows: int, seed: int) -> FetchedKeys:
        with spool_errors(self.spool.folder):
            return self.spool.draw_keys(self.keys, rows, seed, self.writer.threads)

    def write(self, spark: SparkSession, layout: Layout, path: str) -> bool:
        """Write the rows to a folder, one file for each file of the layout that has rows.

        Returns:
            Whether the rows are written. If not, no file exists and Spark must write them.

        Raises:
            BuildError: the disk refused the write, or the folder has moved.
        """
        place = self.writer.place_of(spark, path)
        parts = self._parts(layout)
        if self._is_too_much_for(parts):
            return self._left_to_spark()
        most = self.most_bytes
        with _BUILD_LOCK, ShuffleBuffer(most, self.spool.folder) as buffer:
            folders = _Folders(spark, [part.name for part in self.spool.partition_by], whole=self.spool.whole)
            try:
                self._shuffle(parts, buffer, folders)
            except UnicodeDecodeError:
                return self._left_to_spark("the name of a partition is no UTF-8")
            except NamelessError as exc:
                return self._left_to_spark(str(exc))
            files = self._files(buffer, parts)
            # the parts of a tree differ in size
            if max(file.nbytes for file in files) > min(2 * most, _MAX_FILE_BYTES):
                return self._left_to_spark()
            self.spool.discard()
            with writing_to(place):
                self.writer.make_folders(place, folders.names)
                threads = max(1, self.writer.threads // len(files))
                to_files = FileWriter(
                    self.writer, self._shuffled, parts.finder, buffer, place, folders.names, most, threads
                )
                for _ in ordered_map(to_files.write, to_files.weighed(files), most, self.writer.threads):
                    report_phase("write")
        return True

    def _parts(self, layout: Layout) -> RowGroups:
        """Return how to split files into parts, if they are so large that they are written part by part."""
        finder, file_bytes = CellFinder.by(layout), self.spool.nbytes / layout.files
        if file_bytes <= self._group_bytes:
            return RowGroups(finder)
        return RowGroups.of(finder, file_bytes, self._sample_keys)

    def _files(self, buffer: ShuffleBuffer, parts: RowGroups) -> list[OutputFile]:
        return files_of(buffer.sizes(), parts, self._group_bytes)

    @property
    def _group_bytes(self) -> int:
        """Return the limit for the bytes of rows that are sorted and written at a time, if a file has more."""
        return min(GROUP_BYTES, self.most_bytes)

    def _is_too_much_for(self, parts: RowGroups) -> bool:
        """Return whether a chunk or a part of a file exceeds the memory limit; each is briefly in memory twice."""
        largest = max(chunk.nbytes for chunk in self.spool.chunks)
        return max(2 * largest, self.spool.nbytes / parts.finder.layout.files / parts.of_file) > self.most_bytes

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Set the bytes per row from a sample, if the spec asks for a size and no better figure exists."""
        return with_sampled_row_bytes(spec, self.spool.count, self.spool.nbytes, self._sample_rows, self.writer)

    def size_of(self, layout: Layout, files: Sequence[int]) -> DataSize:
        """Return the number of rows in the optional files, and the bytes that these files occupy on disk."""
        total, parts = DataSize(), self._parts(layout)
        if self._is_too_much_for(parts):
            return total
        with _BUILD_LOCK, ShuffleBuffer(self.most_bytes, self.spool.folder) as buffer:
            self._shuffle(parts, buffer, only=files)
            written = self._files(buffer, parts)

            def size(group: Sequence[int]) -> DataSize:
                rows = buffer.take(group)
                order = self._shuffled.order(parts.finder, rows)
                return DataSize(rows.num_rows, self.writer.size_of(self._shuffled.unpack(rows, order)))

            groups = (
                (group, 2.0 * of.nbytes) for file in written for group, of in zip(file.groups, file.sizes, strict=True)
            )
            for found in ordered_map(size, groups, self.most_bytes, self.writer.threads):
                total.rows += found.rows
                total.nbytes += found.nbytes
                report_phase("sample")
        return total

    def _sample_rows(self) -> pa.Table:
        """Return rows drawn from chunks across the whole spool."""
        with spool_errors(self.spool.folder):
            return pa.concat_tables(
                [self._shuffled.unpack(self.spool.read(one), some) for one, some in self._sample_chunks()]
            )

    def _sample_keys(self) -> pa.Table:
        """Return the keys of sampled rows."""
        with spool_errors(self.spool.folder):
            drawn = [
                self.spool.read_keys(self.keys, chunk).take(pa.array(some)) for chunk, some in self._sample_chunks()
            ]
        return pa.concat_tables(drawn)

    def _sample_chunks(self) -> Iterator[tuple[Chunk, Rows]]:
        """Yield chunks from across the spool, and the numbers of rows drawn from each."""
        chunks = self.spool.chunks
        ends = np.cumsum([chunk.rows for chunk in chunks])
        # at equal distances by rows: a chunk may have only a few rows
        middles = (np.arange(_SAMPLE_CHUNKS) + 0.5) * ends[-1] / _SAMPLE_CHUNKS
        places = np.searchsorted(ends, middles, side="right")
        chosen = [chunks[place] for place in np.unique(places).tolist()]
        random = np.random.default_rng(0)
        for chunk in chosen:
            # drawn at random: with every third row, id % 6 would have only two values
            yield chunk, np.sort(random.choice(chunk.rows, min(SAMPLE_ROWS // len(chosen), chunk.rows), replace=False))

    def _shuffle(
        self,
        parts: RowGroups,
        buffer: ShuffleBuffer,
        folders: _Folders | None = None,
        only: Sequence[int] | None = None,
    ) -> None:
        """Send rows through a layout to their files: all rows to write them, or some files' rows to measure them."""
        share = partial(self._share, parts, folders, only)
        chunks = ((chunk, 2.0 * chunk.nbytes) for chunk in self.spool.chunks)
        with spool_errors(self.spool.folder):
            for rows, places in ordered_map(share, chunks, self.most_bytes, self.writer.threads):
                buffer.add(rows, places)
                report_phase("write" if only is None else "sample")

    def _share(
        self, parts: RowGroups, folders: _Folders | None, only: Sequence[int] | None, chunk: Chunk
    ) -> tuple[pa.Table, dict[int, slice]]:
        """Return a chunk's rows in order of files and parts, and the slice of each part.

        The rows also have the columns that sort them later, see ``ShuffledRows.pack``.
        """
        found, finder = self.spool.read_compact(chunk, self._shuffled.shortened), parts.finder
        keys = self.spool.keys_in(found, self.keys)
        cells = finder.cells(keys)
        order, places = parts.split_by_file(keys, cells, chunk.number, only)
        numbers = None
        if folders is not None and self.spool.partition_by:
            numbers = folders.of(self.spool.partitions_in(found))
        return self._shuffled.pack(found, cells, finder.count, numbers).take(pa.array(order)), places

    def _left_to_spark(self, why: str = "a part of a file, or of the rows, needs too much memory") -> bool:
        _LOG.debug("the rows are placed and written by Spark after all: %s", why)
        return False


class _Folders:
    """Numbers the folders of partitions in the order in which they appear."""

    def __init__(self, spark: SparkSession, columns: Sequence[str], *, whole: bool = False) -> None:
        self.names: list[str] = []
        self._spark = spark
        self._columns = columns
        self._whole = whole
        self._numbers: dict[tuple[str | None, ...], int] = {}
        self._lock = threading.Lock()

    def of(self, texts: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int32]:
        """Return the number of each row's folder, from its partition values as text."""
        distinct, of_row = distinct_partitions(texts, len(texts[0]) + 1)
        with self._lock:
            new = [one for one in distinct if one not in self._numbers]
            self._numbers.update({one: len(self.names) + number for number, one in enumerate(new)})
            self.names += folder_names(self._spark, self._columns, new, whole=self._whole)
            numbers = np.asarray([self._numbers[one] for one in distinct], dtype=np.int32)
        return numbers[of_row]
