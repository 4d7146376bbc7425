"""Rows on this machine's disk as Arrow has them: Spark makes these in half of the time that Parquet takes.

A file is Parquet with one column of bytes, each a batch of rows as Spark sends them to Python: an encapsulated message
of Arrow's format (arrow.apache.org/docs/format/Columnar.html). Figures are in docs/decisions/016.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DecimalType

from dbt_zorder.engine.local.row_estimate import LEAST_WIDTH, MOST_TEXTS, text_length, texts_of, width_of
from dbt_zorder.engine.local.spool_folder import OPTIONS, PIECE_BYTES, column_name, files_in, in_scratch, uri_of
from dbt_zorder.engine.local.spool_parquet import Piece, frame_of
from dbt_zorder.engine.local.spoolable import can_come_back
from dbt_zorder.engine.local.unscaled import unscaled
from dbt_zorder.spark.arrow import ARROW_TYPES
from dbt_zorder.spark.conf import settings
from dbt_zorder.spark.decimals import can_compact, compact_type, decimal_columns
from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.small_queries import estimated_bytes

_LOG = logging.getLogger("dbt_zorder")

_BATCH_ROWS = 4096
_MOST_TEXT = 2048
"""Bytes that the text of a row may take: Spark has a batch in memory some times over in each task."""
_MOST_WIDTH = 2048
"""The same of all else."""
_DECIMALS = 4
"""Of so many columns one may be a decimal of more than 18 digits: these take longer in batches than in Parquet."""
_OPTIONS: Mapping[str, str] = {
    **OPTIONS,
    "compression": "uncompressed",  # takes as long to read as all else
    "maxRecordsPerFile": str(PIECE_BYTES // (LEAST_WIDTH * _BATCH_ROWS)),
    # a batch is a row to Parquet, which looks at the size of what it holds after a hundred
    "parquet.block.size.row.check.min": "1",
    "parquet.page.size.row.check.min": "1",
}
_SPREAD = 16
"""So many times as much as its files may a scan take here, where nothing is compressed, and there is to be room."""
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ASKING = threading.Lock()
"""Threads share the settings of a session."""
_SPARED = 8
"""Bytes of a decimal that are not there while it is a whole number."""
_MOST_KEPT = 256 << 20
"""Bytes of columns that are kept from when all is looked at first."""
_ADAPTIVE = "AdaptiveSparkPlanExec"
_VERSION = "org.apache.spark.version"
_FOR_SPARK = "for_spark"


@dataclass(frozen=True)
class BatchFiles:
    """The rows of a query.

    Attributes:
        query: that was copied.
        folder: of the copy.
        schema: of the rows; the last column tells whether a row had more text than it may have here, and has none.
        wanted: names of columns that will be read of all pieces first; they are kept when these are looked at.
    """

    query: DataFrame
    folder: str
    schema: pa.Schema
    wanted: Sequence[str] = ()

    @property
    def serves_spark(self) -> bool:
        """Whether Spark reads them as they are."""
        return False

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a query with the same columns, which may all be NULL: they are written once more for that.

        Raises:
            BuildError: the disk refused.
        """
        folder = Path(self.folder, _FOR_SPARK)
        # without it Spark would ask which calendar old dates are meant by
        schema = pa.schema(self._columns, {_VERSION: self.query.sparkSession.version})
        # bounds leave NaN out, and dictionaries tell -0.0 from 0.0: a filter of Spark's would go by them
        told = {"write_statistics": False, "use_dictionary": False}
        with in_scratch(self.folder):
            folder.mkdir(exist_ok=True)
            for number, rows in enumerate(map(self.read, self.pieces) if self.pieces else [schema.empty_table()]):
                pq.write_table(rows.cast(schema), folder / f"{number:06d}.parquet", **told)
        return frame_of(self.query, str(folder))

    @cached_property
    def numbers(self) -> Mapping[str, pa.DataType]:
        """Types of the decimals that are whole numbers in a batch."""
        return {column.name: column.type for column in self.schema if can_compact(column.type)}

    @property
    def pieces(self) -> Sequence[Piece]:
        """Some batches each, in the order in which they came."""
        return self._looked_at.pieces

    @property
    def has_long_text(self) -> bool:
        """Whether a row had more text than it may have here: then this is no copy."""
        return self._looked_at.has_long_text

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a piece, or some of their columns, which then keep no others in memory."""
        if columns is None:
            return self.read_compact(piece)
        kept = self._looked_at.kept.pop(piece.number, None)
        if kept is not None and {*columns} <= {*kept.column_names}:
            return kept.select(columns)
        return self._in_decimals(_apart(self._batches(piece.path, piece.group), columns))

    def read_compact(self, piece: Piece, names: Collection[str] = ()) -> pa.Table:
        """Return the rows of a piece, some decimals of them as ``pack_decimals`` makes them."""
        rows = self._batches(piece.path, piece.group).select(self._columns.names)
        for name in names:
            short = rows[name].cast(compact_type(self.numbers[name]))
            rows = rows.set_column(rows.schema.get_field_index(name), name, short)
        return self._in_decimals(rows, names)

    def discard(self) -> None:
        """Delete them."""
        self._looked_at.kept.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def _columns(self) -> pa.Schema:
        return pa.schema([*self.schema][:-1])

    @cached_property
    def _sent(self) -> pa.Schema:
        """What Spark sends."""
        return pa.schema([(one.name, pa.int64() if one.name in self.numbers else one.type) for one in self.schema])

    @cached_property
    def _looked_at(self) -> _Found:
        """Return what is in the files, all of which is read for that, as nothing else tells."""
        groups = [
            (file, group) for file in files_in(self.folder) for group in range(pq.read_metadata(file).num_row_groups)
        ]
        found = _Found()
        with ThreadPoolExecutor(
            min(self.query.sparkSession.sparkContext.defaultParallelism, os.cpu_count() or 1)
        ) as pool:
            looks = deque(pool.submit(self._look_at, found, *group) for group in groups)
            try:
                while looks and not found.has_long_text:
                    found.add(*looks.popleft().result())  # which nobody else holds then
            finally:
                pool.shutdown(cancel_futures=True)
        return found

    def _look_at(self, found: _Found, file: str, group: int) -> tuple[Piece, bool, pa.Table]:
        rows = self._batches(file, group)
        sizes = {column.name: int(rows[column.name].nbytes) for column in self._columns if _is_text(column.type)}
        nbytes = int(rows.select(self._columns.names).nbytes) + _SPARED * len(self.numbers) * rows.num_rows
        nbytes = max(nbytes, LEAST_WIDTH * rows.num_rows)
        piece = Piece(file, group, 0, rows.num_rows, nbytes, sizes)
        has_long_text = bool(pc.any(rows.column(rows.num_columns - 1)).as_py())
        return piece, has_long_text, self._in_decimals(_apart(rows, self.wanted if found.left > 0 else ()))

    def _batches(self, file: str, group: int) -> pa.Table:
        with pq.ParquetFile(file) as opened:
            messages = opened.read_row_group(group, use_threads=False).column(0)
        return pa.Table.from_batches(_read(messages, self._sent), self._sent)

    def _in_decimals(self, rows: pa.Table, but: Collection[str] = ()) -> pa.Table:
        """Return rows with the types of the query."""
        there = {*rows.column_names} - {*but}
        return decimal_columns(rows, {name: kind for name, kind in self.numbers.items() if name in there})


@dataclass
class _Found:
    """What was found in the files.

    Attributes:
        pieces: as of ``BatchFiles``.
        has_long_text: likewise.
        kept: columns that are wanted first, by number of their piece; none of any where they are too many bytes.
        left: bytes that may be kept besides.
    """

    pieces: list[Piece] = field(default_factory=list)
    has_long_text: bool = False
    kept: dict[int, pa.Table] = field(default_factory=dict)
    left: int = field(default_factory=lambda: _MOST_KEPT)

    def add(self, piece: Piece, has_long_text: bool, wanted: pa.Table) -> None:
        """Take what was found in the next group."""
        number = len(self.pieces)
        self.pieces.append(replace(piece, number=number))
        self.has_long_text |= has_long_text
        self.left -= wanted.nbytes
        if self.left <= 0:
            self.kept.clear()
        elif wanted.num_columns:
            self.kept[number] = wanted


def write_batches(df: DataFrame, folder: str, wanted: Sequence[str] = ()) -> BatchFiles | None:
    """Copy the rows of a query that is a plain scan; None where that is to be done in another way.

    Args:
        df: the query, in a session that ``can_copy``; what runs before its last stage would not go by the session's
            settings.
        folder: of the copy.
        wanted: as of ``BatchFiles``.
    """
    spark, jvm = df.sparkSession, jvm_of(df.sparkSession)  # by whose settings the plan runs, as it is the active one
    fields, width = df.schema.fields, width_of(df.schema)
    if width is None or width > _MOST_WIDTH or str(spark.conf.get(_LARGE, "false")).lower() != "false":
        return None
    if len(texts_of(df.schema)) > MOST_TEXTS:
        return None
    names = [column_name(place) for place in range(len(fields) + 1)]
    kinds = [*(_arrow_type(field.dataType) for field in fields), pa.bool_()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    if _DECIMALS * sum(pa.types.is_decimal(kind) and not can_compact(kind) for kind in kinds) > len(fields):
        return None
    if not can_come_back(df):  # Spark's writer asks which calendar old dates and times are meant by
        return None
    size = estimated_bytes(df)
    if size is None or _SPREAD * size > shutil.disk_usage(Path(folder).parent).free:
        return None
    told = _with_long_text(df.toDF(*names[:-1]), names[-1])
    files = BatchFiles(df, folder, schema, wanted)
    try:
        query = unscaled(told, files.numbers)
        plan = query.queryExecution().executedPlan()
        if str(plan.getClass().getSimpleName()) == _ADAPTIVE or not plan.subqueriesAll().isEmpty():
            return None
        with _ASKING, settings(spark, {_ROWS: str(_BATCH_ROWS)}):
            batches = query.toArrowBatchRdd(plan)  # reads nothing yet
        session: Any = spark._jsparkSession
        writer = session.createDataset(batches, class_named(jvm, "org.apache.spark.sql.Encoders").BINARY()).write()
    except Exception as exc:  # another version of Spark has no such call
        _LOG.debug("rows are copied as Parquet: %s", in_one_line(exc))
        return None
    for name, value in _OPTIONS.items():
        writer = writer.option(name, value)
    writer.parquet(uri_of(folder))
    return files if files_in(folder) else None


def _arrow_type(data_type: DataType) -> pa.DataType:
    """Return what Spark makes of a type that ``width_of`` knows; of a moment the zone is told alike in all sessions."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return ARROW_TYPES[data_type.simpleString()]


def _with_long_text(df: DataFrame, name: str) -> DataFrame:
    """Return rows, and behind them whether they have too much text; of those that have, without it."""
    texts = texts_of(df.schema)
    if not texts:
        return df.selectExpr("*", f"false AS {name}")
    # a column, so that it is reckoned once a row, however many columns of text ask for it
    told = df.selectExpr("*", f"({text_length(df)}) > {_MOST_TEXT}L AS {name}")
    wanted = [f"IF({name}, NULL, {column}) AS {column}" if column in texts else column for column in df.columns]
    return told.selectExpr(*wanted, name)


def _read(messages: pa.ChunkedArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for chunk in messages.chunks:
        _, ends, values = chunk.buffers()
        all_bytes = np.frombuffer(values, np.uint8)
        for begin, end in pairwise(np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]):
            # copied, because in the file's pages values begin anywhere, and Arrow reads what begins at a multiple of
            # eight; into its own memory, which it uses again, where Python gives back what is as long as this
            message = pa.allocate_buffer(int(end - begin))
            np.frombuffer(message, np.uint8)[:] = all_bytes[begin:end]
            yield pa.ipc.read_record_batch(message, schema)


def _apart(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return some columns, each in one piece and in memory of its own: a batch lies in memory as a whole."""
    kinds = rows.schema
    return pa.table(
        {name: pa.concat_arrays([*rows[name].chunks, pa.array([], kinds.field(name).type)]) for name in columns}
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
