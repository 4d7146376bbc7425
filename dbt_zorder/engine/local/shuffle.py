"""Buffers rows by the file, or part of a file, that they belong to: in memory, and beyond a limit on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from dbt_zorder.engine.row_bytes import DataSize
from dbt_zorder.spark.arrow import one_chunk

_CODEC = "lz4"
_MOST_CHUNK = 1 << 30
"""Limit for the bytes of a table in one chunk: offsets of text and arrays have 32 bits."""


class ShuffleBuffer:
    """Rows by their part of a file, each part in the order in which rows were added.

    One thread adds rows; afterwards any number of threads read.
    """

    def __init__(self, most_bytes: int, folder: str) -> None:
        """Buffer up to ``most_bytes`` in memory, and the rest in a file in ``folder``."""
        self._most = most_bytes
        self._path = Path(folder, "shares")
        self._buffered: list[tuple[pa.Table, dict[int, slice]]] = []
        self._buffered_bytes = 0
        self._spilled: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._sizes: dict[int, DataSize] = defaultdict(DataSize)

    def __enter__(self) -> ShuffleBuffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._buffered.clear()
        with suppress(OSError):
            self._path.unlink()

    def add(self, rows: pa.Table, parts: dict[int, slice]) -> None:
        """Add rows in one chunk that are ordered by part, with the slice of each part."""
        if not parts:
            return
        for (part, here), size in zip(parts.items(), _sizes(rows, list(parts.values())), strict=True):
            self._sizes[part].rows += here.stop - here.start
            self._sizes[part].nbytes += size
        self._buffered.append((rows, parts))
        self._buffered_bytes += rows.nbytes
        if self._buffered_bytes > self._most:
            self._spill()

    def sizes(self) -> dict[int, DataSize]:
        """Return the size of each part that has rows, in order of part numbers."""
        return dict(sorted(self._sizes.items()))

    def take(self, parts: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the given parts, one part after the other, or only the given columns."""
        if columns is not None and not columns:  # Arrow would read all columns for an empty list
            return pa.table({})
        chunks = (chunk for part in parts for chunk in (*self._read(part, columns), *self._buffered_of(part)))
        return pa.concat_tables([chunk if columns is None else chunk.select(columns) for chunk in chunks])

    def _buffered_of(self, part: int) -> Iterator[pa.Table]:
        for rows, parts in self._buffered:
            here = parts.get(part)
            if here is not None:
                yield rows.slice(here.start, here.stop - here.start)

    def _spill(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression=_CODEC)
        with self._path.open("ab") as sink:
            for part in sorted({part for _, parts in self._buffered for part in parts}):
                start = sink.tell()
                together = pa.concat_tables(list(self._buffered_of(part)))
                if together.nbytes < _MOST_CHUNK:
                    together = together.combine_chunks()
                with pa.ipc.new_stream(sink, together.schema, options=options) as stream:
                    stream.write_table(together)
                self._spilled[part].append((start, sink.tell() - start))
        self._buffered.clear()
        self._buffered_bytes = 0

    def _read(self, part: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        if part in self._spilled:
            with self._path.open("rb") as source:
                for start, size in self._spilled[part]:
                    source.seek(start)
                    yield _columns_of(source.read(size), columns)


def _columns_of(stream: bytes, columns: Sequence[str] | None) -> pa.Table:
    """Return the table in an Arrow stream; only the given columns are decompressed."""
    fields = None
    if columns is not None:
        with pa.ipc.open_stream(stream) as reader:
            fields = [reader.schema.get_field_index(name) for name in columns]
    with pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(included_fields=fields)) as found:
        return found.read_all()


def _sizes(rows: pa.Table, slices: Sequence[slice]) -> list[int]:
    """Return the bytes of slices of rows, with the actual length of text and nested values."""
    starts = np.asarray([here.start for here in slices])
    ends = np.asarray([here.stop for here in slices])
    total = np.zeros(len(starts))
    for column in rows.columns:
        values = one_chunk(column)
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :]
            total += offsets[ends] - offsets[starts] + 4 * (ends - starts)
        elif pa.types.is_nested(values.type):
            total += [values.slice(here.start, here.stop - here.start).nbytes for here in slices]
        else:
            total += (ends - starts) * values.type.bit_width / 8
    return [int(size) for size in np.ceil(total)]
