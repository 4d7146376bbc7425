"""Files of rows that were shared out: put in order and written, a large one row group by row group."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_zorder.engine.local.moved_rows import MovedRows
from dbt_zorder.engine.local.output_files import ShareFile
from dbt_zorder.engine.local.pipeline import in_turn
from dbt_zorder.engine.local.place import Placing
from dbt_zorder.engine.local.shuffle import Shares
from dbt_zorder.engine.parquet.column_options import Traits, telling
from dbt_zorder.engine.parquet.writer import ArrowWriter, by_folder
from dbt_zorder.spark.local_disk import LocalPath

_AHEAD = 2
"""Row groups of one file in memory at a time, where another thread puts the next in order while one is written."""


@dataclass(frozen=True)
class ShareWriter:
    """What writes files.

    Attributes:
        writer: of Parquet.
        moved: the rows.
        placing: of them.
        shares: where they are.
        place: of the files.
        folders: names of the partitions' folders.
        most_bytes: that rows may take here.
        threads: that there are for one file: Arrow itself writes by one.
    """

    writer: ArrowWriter
    moved: MovedRows
    placing: Placing
    shares: Shares
    place: LocalPath
    folders: Sequence[str]
    most_bytes: int
    threads: int = 1

    def weighed(self, files: Iterable[ShareFile]) -> Iterator[tuple[ShareFile, float]]:
        """Give files with the bytes that writing each takes in memory."""
        for file in files:
            yield file, float(file.nbytes * (_AHEAD if self._is_ahead(file) else 1))

    def write(self, file: ShareFile) -> None:
        """Write a file, or one in each folder that it has rows of."""
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

    def _is_ahead(self, file: ShareFile) -> bool:
        """Tell whether groups of a file are put in order while one is written."""
        return self.threads > 1 and len(file.groups) > 1 and _AHEAD * file.nbytes <= self.most_bytes

    def _groups(self, file: ShareFile) -> Generator[Iterable[tuple[str, pa.Table]], None, None]:
        """Give the rows of each group by their folders, in order."""
        if not self._is_ahead(file):
            yield from map(self._by_folder, file.groups)
            return
        weighed = ((group, 1.0) for group in file.groups)
        yield from in_turn(lambda group: list(self._by_folder(group)), weighed, _AHEAD, 1)

    def _traits_of(self, first: pa.Table, file: ShareFile) -> Traits:
        """Return what the columns of a file are like whose first rows these are."""
        traits = Traits.of(first, self.writer.page_rows, first.num_rows)
        names = telling(first.schema)
        told = {column: name for column, name in self.moved.copied.data_columns.items() if name in names}
        for group, size in zip(file.groups, file.sizes, strict=True):
            found = self.shares.take(group, list(told)).rename_columns(list(told.values()))
            traits = traits.beside(found, size.rows, size.nbytes // size.rows)
        return traits

    def _by_folder(self, group: Sequence[int], threads: int = 1) -> Iterator[tuple[str, pa.Table]]:
        """Give the rows of some parts in their order by the folders of their partitions, mostly one."""
        found = self.shares.take(group)
        order = self.moved.order(self.placing, found)
        parts = [("", order)]
        if self.moved.copied.partition_by:
            parts = by_folder(self.folders, self.moved.folders(found)[order], order)
        for folder, rows in parts:
            yield folder, self.moved.in_order(found, rows, threads)
