"""Rows of a large query that lie on this machine's disk: placed piece by piece, and written file by file."""

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
from dbt_zorder.engine.local.file_writer import ShareWriter
from dbt_zorder.engine.local.moved_rows import MovedRows
from dbt_zorder.engine.local.output_files import ShareFile, files_of
from dbt_zorder.engine.local.pipeline import in_turn
from dbt_zorder.engine.local.place import Placing
from dbt_zorder.engine.local.row_groups import Parts
from dbt_zorder.engine.local.shuffle import Shares
from dbt_zorder.engine.local.small_table import TELLING_ROWS
from dbt_zorder.engine.local.spool import Copied
from dbt_zorder.engine.local.spool_folder import in_scratch
from dbt_zorder.engine.local.spool_parquet import Piece
from dbt_zorder.engine.parquet.writer import GROUP_BYTES, ArrowWriter, writing_to
from dbt_zorder.engine.row_bytes import Share, by_some_rows
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.known_keys import DrawnKeys, FetchedKeys
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.partitions import NamelessError, folder_names
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.progress import report_phase
from dbt_zorder.spark.memory import memory_here

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

    @cached_property
    def _moved(self) -> MovedRows:
        return MovedRows(self.copied, self.keys)

    @property
    def key_bytes(self) -> int | None:
        """Bytes of what all rows are placed by, None where they are too many to plan by them."""
        size = self.copied.key_bytes(self.keys)
        return size if size <= min(_MOST_KEYS, self.most_bytes) else None

    def fetch_keys(self) -> FetchedKeys:
        """Return what all rows are placed by."""
        with in_scratch(self.copied.folder):
            return self.copied.fetch_keys(self.keys, self.writer.threads)

    @property
    def drawn_keys(self) -> DrawnKeys:
        """What as many rows are placed by as a plan asks for."""
        return DrawnKeys(self.copied.count, self.copied.text_bytes(self.keys), self._draw_keys)

    def _draw_keys(self, rows: int, seed: int) -> FetchedKeys:
        with in_scratch(self.copied.folder):
            return self.copied.draw_keys(self.keys, rows, seed, self.writer.threads)

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
            folders = _Folders(spark, [part.name for part in self.copied.partition_by], whole=self.copied.whole)
            try:
                self._share_out(parts, shares, folders)
            except UnicodeDecodeError:
                return self._left_to_spark("the name of a partition is no UTF-8")
            except NamelessError as exc:
                return self._left_to_spark(str(exc))
            files = self._files(shares, parts)
            # a tree's parts are not all of one size
            if max(file.nbytes for file in files) > min(2 * most, _MOST_FILE):
                return self._left_to_spark()
            self.copied.discard()
            with writing_to(place):
                self.writer.make_folders(place, folders.names)
                threads = max(1, self.writer.threads // len(files))
                to_files = ShareWriter(
                    self.writer, self._moved, parts.placing, shares, place, folders.names, most, threads
                )
                for _ in in_turn(to_files.write, to_files.weighed(files), most, self.writer.threads):
                    report_phase("write")
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
        return by_some_rows(spec, self.copied.count, self.copied.nbytes, self._few, self.writer)

    def size_of(self, layout: Layout, files: Sequence[int]) -> Share:
        """Return how many rows some files have, and how many bytes these take as they are written."""
        total, parts = Share(), self._parts(layout)
        if self._is_too_much_for(parts):
            return total
        with _ALONE, Shares(self.most_bytes, self.copied.folder) as shares:
            self._share_out(parts, shares, only=files)
            written = self._files(shares, parts)

            def size(group: Sequence[int]) -> Share:
                rows = shares.take(group)
                order = self._moved.order(parts.placing, rows)
                return Share(rows.num_rows, self.writer.size_of(self._moved.in_order(rows, order)))

            groups = (
                (group, 2.0 * of.nbytes) for file in written for group, of in zip(file.groups, file.sizes, strict=True)
            )
            for found in in_turn(size, groups, self.most_bytes, self.writer.threads):
                total.rows += found.rows
                total.nbytes += found.nbytes
                report_phase("sample")
        return total

    def _few(self) -> pa.Table:
        """Return some rows, drawn from pieces all over."""
        with in_scratch(self.copied.folder):
            return pa.concat_tables([self._moved.in_order(self.copied.read(one), some) for one, some in self._drawn()])

    def _some_keys(self) -> pa.Table:
        """Return what some rows are placed by."""
        with in_scratch(self.copied.folder):
            drawn = [self.copied.read_keys(self.keys, piece).take(pa.array(some)) for piece, some in self._drawn()]
        return pa.concat_tables(drawn)

    def _drawn(self) -> Iterator[tuple[Piece, Rows]]:
        """Give pieces from all over the copy, and rows drawn from each."""
        pieces = self.copied.pieces
        ends = np.cumsum([piece.rows for piece in pieces])
        # at equal distances by rows: pieces may be as small as a few of them
        middles = (np.arange(_TELLING_PIECES) + 0.5) * ends[-1] / _TELLING_PIECES
        places = np.searchsorted(ends, middles, side="right")
        chosen = [pieces[place] for place in np.unique(places).tolist()]
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
                report_phase("write" if only is None else "sample")

    def _share(
        self, parts: Parts, folders: _Folders | None, only: Sequence[int] | None, piece: Piece
    ) -> tuple[pa.Table, dict[int, slice]]:
        """Return rows in order of files and their parts, with what tells their order there, and where parts lie."""
        found, placing = self.copied.read_compact(piece, self._moved.shortened), parts.placing
        keys = self.copied.keys_in(found, self.keys)
        cells = placing.cells(keys)
        order, places = parts.share_out(keys, cells, piece.number, only)
        numbers = None
        if folders is not None and self.copied.partition_by:
            numbers = folders.of(self.copied.partitions_in(found))
        return self._moved.moved(found, cells, placing.count, numbers).take(pa.array(order)), places

    def _left_to_spark(self, why: str = "a part of a file, or of the rows, takes too much of memory") -> bool:
        _LOG.debug("the rows are placed and written by Spark after all: %s", why)
        return False


class _Folders:
    """Folders of partitions as they come, by number."""

    def __init__(self, spark: SparkSession, columns: Sequence[str], *, whole: bool = False) -> None:
        self.names: list[str] = []
        self._spark = spark
        self._columns = columns
        self._whole = whole
        self._numbers: dict[tuple[str | None, ...], int] = {}
        self._lock = threading.Lock()

    def of(self, texts: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int32]:
        """Return the number of each row's folder, by the values of its partition as text."""
        distinct, of_row = distinct_partitions(texts, len(texts[0]) + 1)
        with self._lock:
            new = [one for one in distinct if one not in self._numbers]
            self._numbers.update({one: len(self.names) + number for number, one in enumerate(new)})
            self.names += folder_names(self._spark, self._columns, new, whole=self._whole)
            numbers = np.asarray([self._numbers[one] for one in distinct], dtype=np.int32)
        return numbers[of_row]
