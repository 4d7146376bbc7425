"""Sorts and writes the files of shuffled rows, a large one row group by row group."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_zorder.engine.local.output_files import OutputFile
from dbt_zorder.engine.local.pipeline import ordered_map
from dbt_zorder.engine.local.place import CellFinder
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.engine.parquet.column_options import Traits, float_columns
from dbt_zorder.engine.parquet.writer import ArrowWriter, by_folder
from dbt_zorder.spark.local_disk import LocalPath

_AHEAD = 2
"""Maximum row groups of one file in memory: another thread may sort the next while one is written."""


@dataclass(frozen=True)
class FileWriter:
    """Writes output files from a shuffle buffer.

    Attributes:
        writer: Parquet writer.
        shuffled: packing of the rows.
        finder: cell finder of the layout.
        buffer: shuffle buffer with the rows.
        place: folder of the files.
        folders: names of the partitions' folders.
        most_bytes: limit for the bytes of rows in memory.
        threads: number of threads per file; Arrow itself writes a file with one.
    """

    writer: ArrowWriter
    shuffled: ShuffledRows
    finder: CellFinder
    buffer: ShuffleBuffer
    place: LocalPath
    folders: Sequence[str]
    most_bytes: int
    threads: int = 1

    def weighed(self, files: Iterable[OutputFile]) -> Iterator[tuple[OutputFile, float]]:
        """Yield files with the bytes that writing each needs in memory."""
        for file in files:
            yield file, float(file.nbytes * (_AHEAD if self._is_ahead(file) else 1))

    def write(self, file: OutputFile) -> None:
        """Write a file, or one in each partition folder that it has rows of."""
        if len(file.groups) == 1:
            for folder, rows in self._by_folder(file.groups[0], self.threads):
                self.writer.write_file(self.place, folder, file.number, rows)
            return
        opened: dict[str, pq.ParquetWriter] = {}
        with contextlib.closing(self._groups(file)) as groups, contextlib.ExitStack() as until_written:
            for group in groups:
                for folder, rows in group:
                    if folder not in opened:
                        traits = self._traits_of(rows, file)
                        new = self.writer.new_file(self.place, folder, file.number, rows.schema, traits)
                        opened[folder] = until_written.enter_context(new)
                    opened[folder].write_table(rows, row_group_size=rows.num_rows)

    def _is_ahead(self, file: OutputFile) -> bool:
        """Return whether a thread sorts the next row group of a file while one is written."""
        return self.threads > 1 and len(file.groups) > 1 and _AHEAD * file.nbytes <= self.most_bytes

    def _groups(self, file: OutputFile) -> Generator[Iterable[tuple[str, pa.Table]], None, None]:
        """Yield the rows of each row group by folder, in order."""
        if not self._is_ahead(file):
            yield from map(self._by_folder, file.groups)
            return
        weighed = ((group, 1.0) for group in file.groups)
        yield from ordered_map(lambda group: list(self._by_folder(group)), weighed, _AHEAD, 1)

    def _traits_of(self, first: pa.Table, file: OutputFile) -> Traits:
        """Return the traits of a file's columns, given its first row group."""
        traits = Traits.of(first, self.writer.page_rows, first.num_rows)
        names = float_columns(first.schema)
        columns = {column: name for column, name in self.shuffled.spool.data_columns.items() if name in names}
        for group, size in zip(file.groups, file.sizes, strict=True):
            found = self.buffer.take(group, list(columns)).rename_columns(list(columns.values()))
            traits = traits.with_row_group(found, size.rows, size.nbytes // size.rows)
        return traits

    def _by_folder(self, group: Sequence[int], threads: int = 1) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of the given parts in file order by partition folder; usually there is one folder."""
        found = self.buffer.take(group)
        order = self.shuffled.order(self.finder, found)
        parts = [("", order)]
        if self.shuffled.spool.partition_by:
            parts = by_folder(self.folders, self.shuffled.folders(found)[order], order)
        for folder, rows in parts:
            yield folder, self.shuffled.unpack(found, rows, threads)
