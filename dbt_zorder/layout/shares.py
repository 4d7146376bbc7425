"""Rows on their way to the files that they are for: in memory, and beyond some bytes on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyarrow as pa

_CODEC = "lz4"


class Shares:
    """Rows by file, each file's in the order in which they were added.

    One thread adds; then any number take.
    """

    def __init__(self, most_bytes: int, folder: str) -> None:
        """Hold up to ``most_bytes`` in memory, and a file in ``folder`` for the rest."""
        self._most = most_bytes
        self._path = Path(folder, "shares")
        self._held: dict[int, list[pa.Table]] = defaultdict(list)
        self._held_bytes = 0
        self._spilled: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._bytes: dict[int, float] = defaultdict(float)
        self._end = 0

    def __enter__(self) -> Shares:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.clear()
        with suppress(OSError):
            self._path.unlink()

    def add(self, rows: pa.Table, files: dict[int, slice]) -> None:
        """Add rows that lie in order of their files, and say where each file's lie."""
        row_bytes = rows.nbytes / max(1, rows.num_rows)
        for file, here in files.items():
            self._held[file].append(rows.slice(here.start, here.stop - here.start))
            self._bytes[file] += row_bytes * (here.stop - here.start)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self._most:
            self._spill()

    def files(self) -> list[tuple[int, float]]:
        """Return the files that have rows, in order, and the bytes of each in memory."""
        return sorted(self._bytes.items())

    def take(self, file: int) -> pa.Table:
        """Return the rows of a file, for the last time."""
        return pa.concat_tables([*self._read(file), *self._held.pop(file, [])])

    def _spill(self) -> None:
        with self._path.open("ab") as sink:
            for file, parts in sorted(self._held.items()):
                start = sink.tell()
                together = pa.concat_tables(parts).combine_chunks()
                options = pa.ipc.IpcWriteOptions(compression=_CODEC)
                with pa.ipc.new_stream(sink, together.schema, options=options) as stream:
                    stream.write_table(together)
                self._spilled[file].append((start, sink.tell() - start))
        self._held.clear()
        self._held_bytes = 0

    def _read(self, file: int) -> Iterator[pa.Table]:
        if file in self._spilled:
            with self._path.open("rb") as source:
                for start, size in self._spilled[file]:
                    source.seek(start)
                    yield pa.ipc.open_stream(source.read(size)).read_all()
