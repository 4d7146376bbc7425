"""Rows of a small query, held in this process: placed here, and written by Arrow as Spark would write them."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.disk import on_disk
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.fetched import Fetched, fetch
from dbt_zorder.layout.few import MOST_TEXTS, measure_few, most_bytes_of, texts_of, width_of
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.placing import placeable, rows_of_files
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.layout.sizing import SPLIT_ABOVE, auto_size, parse_size
from dbt_zorder.layout.staging import Staged
from dbt_zorder.table.arrow_files import ArrowWriter, are_old, arrow_writer
from dbt_zorder.table.request import BuildRequest, partition_columns
from dbt_zorder.table.room import Room

_LOG = logging.getLogger("dbt_zorder")

_TELLING_ROWS = 20_000
"""Of so many rows, drawn from all, the bytes of a row are learned."""

_ROOM = Room()


@dataclass(frozen=True)
class HeldRows:
    """All rows of a query, and how they are written.

    Attributes:
        fetched: the rows.
        writer: of their files.
    """

    fetched: Fetched
    writer: ArrowWriter

    def write(self, spark: SparkSession, layout: Layout, path: str) -> None:
        """Write the rows to a folder, one file each of the layout's that gets any.

        Raises:
            BuildError: the disk refused, or the folder lies elsewhere by now.
        """
        place = on_disk(spark, path)
        # whoever made the folder did so by Spark's client, which may see another disk, or its name in other bytes
        if place is None or not os.path.isdir(os.path.dirname(place.path)):
            msg = f"The folder {path} cannot be written to from here any more."
            raise BuildError(msg)
        self.writer.write(self.fetched, rows_of_files(self.fetched.keys, layout, self.writer.threads).values(), place)

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Let a spec know what a row takes on disk, roughly, where it asks for a size and nothing else tells."""
        rows = self.fetched.rows
        if spec.files is not None or spec.row_bytes is not None or not rows.num_rows:
            return spec
        one_file = SPLIT_ABOVE * (parse_size(spec.file_size) or auto_size(0))
        if rows.nbytes < one_file:
            return replace(spec, row_bytes=rows.nbytes / rows.num_rows)
        # not each third one, of which id % 6 would have two values
        chosen = np.random.default_rng(0).choice(rows.num_rows, min(_TELLING_ROWS, rows.num_rows), replace=False)
        few = np.sort(chosen)
        return replace(spec, row_bytes=self._bytes_of(rows.take(pa.array(few))) / len(few))

    def measured_row(self, layout: Layout, files: Sequence[int]) -> float | None:
        """Return the bytes that a row takes in some files of a layout, None if they have no rows."""
        found = rows_of_files(self.fetched.keys, layout, self.writer.threads)
        chosen = [found[file] for file in files if file in found]
        rows = sum(map(len, chosen))
        return sum(self._bytes_of(self.fetched.rows.take(pa.array(one))) for one in chosen) / rows if rows else None

    def _bytes_of(self, rows: pa.Table) -> int:
        sink = io.BytesIO()
        self.writer.write_to(sink, rows)
        return sink.tell()


@contextlib.contextmanager
def hold_rows(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], path: str, layout: Layout | None = None
) -> Iterator[tuple[HeldRows | None, int | None]]:
    """Fetch the rows of a query if they are few and can be written from here, and hold them while the block runs.

    Gives None for them if they are not, and behind them their number if it is known. Waits until what other threads of
    this process hold leaves room.

    Args:
        staged: the query.
        request: what is made of it.
        keys: what rows are placed by.
        path: of the folder, or one beside it.
        layout: that rows go by, where it is known before.
    """
    df = staged.rows
    writer = _writer(staged, request, keys, path, layout)
    if isinstance(writer, str):
        _LOG.debug("%s is laid out and written by Spark: %s", request.table, writer)
        yield None, None
        return
    most = most_bytes_of(df.sparkSession, request.in_memory)
    few, rows, size = measure_few(df, most, kept=staged.is_kept, parted=bool(request.spec.partition_by))
    if not few or rows == 0:
        _LOG.debug(
            "%s is laid out and written by Spark: %s rows, at most %d bytes are allowed", request.table, rows, most
        )
        yield None, rows
        return
    with contextlib.ExitStack() as room:
        correct = room.enter_context(_ROOM.take(size, most))
        fetched = fetch(df, keys, most, rows, partition_columns(df.sparkSession, df.schema, request))
        held = None
        if fetched is not None:
            rows = fetched.count
            if are_old(df.sparkSession, fetched.rows):
                _LOG.debug("%s is written by Spark, as it has dates of another calendar", request.table)
            else:
                correct(fetched.rows.nbytes)
                _LOG.debug("%s is laid out and written here: %d rows", request.table, rows)
                held = HeldRows(fetched, writer)
        del fetched
        if held is None:
            room.close()  # for as long as Spark writes
        yield held, rows


def _writer(
    staged: Staged, request: BuildRequest, keys: Sequence[Key], path: str, layout: Layout | None
) -> ArrowWriter | str:
    """Return what writes the files; or in a few words why Spark is to."""
    df, spec = staged.rows, request.spec
    if not request.in_memory:
        return "zorder_in_memory is never"
    if request.bloom:
        return "it has bloom filters"
    if len(keys) > 1 and (spec.curve, spec.encoding) != ("zorder", "rank"):
        return "its curve is of Spark's own"
    if layout is not None and not placeable(layout):
        return "its tree is of another curve"
    if width_of(df.schema) is None:
        return "it has a type that only Spark writes"
    if len(texts_of(df.schema)) > MOST_TEXTS:
        return f"it has more than {MOST_TEXTS} columns of text"
    parts = {column.name for column in partition_columns(df.sparkSession, df.schema, request)}
    data = StructType([field for field in df.schema.fields if field.name not in parts])
    return arrow_writer(df.sparkSession, data, request.options, path)
