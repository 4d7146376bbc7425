"""Rows on their way to the files that they are for: in memory, and beyond some bytes on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np
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
        self._held: list[tuple[pa.Table, dict[int, slice]]] = []
        self._held_bytes = 0
        self._spilled: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._bytes: dict[int, int] = defaultdict(int)

    def __enter__(self) -> Shares:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.clear()
        with suppress(OSError):
            self._path.unlink()

    def add(self, rows: pa.Table, files: dict[int, slice]) -> None:
        """Add rows in one chunk that lie in order of their files, and say where each file's lie."""
        if not files:
            return
        for file, size in zip(files, _sizes(rows, list(files.values())), strict=True):
            self._bytes[file] += size
        self._held.append((rows, files))
        self._held_bytes += rows.nbytes
        if self._held_bytes > self._most:
            self._spill()

    def files(self) -> list[tuple[int, int]]:
        """Return the files that have rows, in order, and the bytes of each in memory."""
        return sorted(self._bytes.items())

    def take(self, file: int) -> pa.Table:
        """Return the rows of a file."""
        return pa.concat_tables([*self._read(file), *self._held_of(file)])

    def _held_of(self, file: int) -> Iterator[pa.Table]:
        for rows, files in self._held:
            here = files.get(file)
            if here is not None:
                yield rows.slice(here.start, here.stop - here.start)

    def _spill(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression=_CODEC)
        with self._path.open("ab") as sink:
            for file in sorted({file for _, files in self._held for file in files}):
                start = sink.tell()
                together = pa.concat_tables(list(self._held_of(file))).combine_chunks()
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


def _sizes(rows: pa.Table, slices: Sequence[slice]) -> list[int]:
    """Return the bytes of some stretches of rows, of text as long as it is there."""
    starts = np.asarray([here.start for here in slices])
    ends = np.asarray([here.stop for here in slices])
    total = np.zeros(len(starts))
    for column in rows.columns:
        values = column.combine_chunks()
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :]
            total += offsets[ends] - offsets[starts] + 4 * (ends - starts)
        else:
            total += (ends - starts) * values.type.bit_width / 8
    return [int(size) for size in np.ceil(total)]
