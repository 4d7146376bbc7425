"""Spools rows as Arrow record batches, which Spark writes in half of the time that Parquet needs.

A file is Parquet with one binary column. Each value is a batch of rows as Spark sends them to Python: an encapsulated
message of Arrow's format (arrow.apache.org/docs/format/Columnar.html). Figures are in docs/decisions/016.
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

from dbt_zorder.engine.local.row_estimate import LEAST_WIDTH, MOST_TEXTS, estimated_row_bytes, text_length, texts_of
from dbt_zorder.engine.local.spool.folder import CHUNK_BYTES, OPTIONS, column_name, files_in, spool_errors, uri_of
from dbt_zorder.engine.local.spool.parquet_files import Chunk, spooled_query
from dbt_zorder.engine.local.spool.spoolable import survives_parquet
from dbt_zorder.engine.local.spool.unscaled import unscaled
from dbt_zorder.spark.arrow import ARROW_TYPES
from dbt_zorder.spark.conf import settings
from dbt_zorder.spark.decimals import can_compact, compact_type, decimal_columns
from dbt_zorder.spark.jvm import class_named, jvm_of
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.small_queries import estimated_bytes

_LOG = logging.getLogger("dbt_zorder")

_BATCH_ROWS = 4096
_MAX_ROW_TEXT_BYTES = 2048
"""Limit for the bytes of text in a row: each task of Spark has several copies of a batch in memory."""
_MAX_ROW_BYTES = 2048
"""Limit for the bytes of a row's other columns."""
_COLUMNS_PER_LONG_DECIMAL = 4
"""One column in this number may be a decimal of more than 18 digits: these are slower in batches than in Parquet."""
_OPTIONS: Mapping[str, str] = {
    **OPTIONS,
    "compression": "uncompressed",  # decompressing takes as long as all other reading
    "maxRecordsPerFile": str(CHUNK_BYTES // (LEAST_WIDTH * _BATCH_ROWS)),
    # to Parquet a batch is one row, and by default it checks its size only after a hundred
    "parquet.block.size.row.check.min": "1",
    "parquet.page.size.row.check.min": "1",
}
_UNCOMPRESSED_RATIO = 16
"""Assumed ratio of uncompressed batches to the files of a scan, for the check of free disk space."""
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SETTINGS_LOCK = threading.Lock()
"""Serializes threads, which share the settings of a session."""
_SAVED_DECIMAL_BYTES = 8
"""Bytes that a decimal saves while it is a whole number."""
_MAX_CACHED_BYTES = 256 << 20
"""Limit for the bytes of columns that the first scan caches."""
_ADAPTIVE = "AdaptiveSparkPlanExec"
_VERSION = "org.apache.spark.version"
_FOR_SPARK = "for_spark"


@dataclass(frozen=True)
class BatchFiles:
    """Files with the rows of a query as Arrow record batches.

    Attributes:
        query: query that was spooled.
        folder: folder of the files.
        schema: Arrow schema of the rows; the last column flags rows whose text was too long, and is therefore NULL.
        wanted: names of columns that all chunks will be read for first; the first scan caches them.
    """

    query: DataFrame
    folder: str
    schema: pa.Schema
    wanted: Sequence[str] = ()

    @property
    def serves_spark(self) -> bool:
        """Return False: Spark cannot read these files."""
        return False

    @cached_property
    def frame(self) -> DataFrame:
        """Return a query over the rows with the same columns, all nullable; this writes them once more, as Parquet.

        Raises:
            BuildError: the disk refused the write.
        """
        folder = Path(self.folder, _FOR_SPARK)
        # without the version Spark would ask for the calendar of old dates
        schema = pa.schema(self._columns, {_VERSION: self.query.sparkSession.version})
        # bounds exclude NaN and dictionaries distinguish -0.0 from 0.0: Spark's filters must not use them
        options = {"write_statistics": False, "use_dictionary": False}
        with spool_errors(self.folder):
            folder.mkdir(exist_ok=True)
            for number, rows in enumerate(map(self.read, self.chunks) if self.chunks else [schema.empty_table()]):
                pq.write_table(rows.cast(schema), folder / f"{number:06d}.parquet", **options)
        return spooled_query(self.query, str(folder))

    @cached_property
    def numbers(self) -> Mapping[str, pa.DataType]:
        """Return the types of the decimals that are whole numbers in a batch."""
        return {column.name: column.type for column in self.schema if can_compact(column.type)}

    @property
    def chunks(self) -> Sequence[Chunk]:
        """Return the chunks, each several batches, in the order in which they came."""
        return self._scan.chunks

    @property
    def has_long_text(self) -> bool:
        """Return whether any row had too much text: then the spool is incomplete."""
        return self._scan.has_long_text

    def read(self, chunk: Chunk, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a chunk, or only the given columns, which then keep no others in memory."""
        if columns is None:
            return self.read_compact(chunk)
        cached = self._scan.cached.pop(chunk.number, None)
        if cached is not None and {*columns} <= {*cached.column_names}:
            return cached.select(columns)
        return self._in_decimals(_own_columns(self._batches(chunk.path, chunk.group), columns))

    def read_compact(self, chunk: Chunk, names: Collection[str] = ()) -> pa.Table:
        """Return the rows of a chunk, with the named decimals packed as by ``pack_decimals``."""
        rows = self._batches(chunk.path, chunk.group).select(self._columns.names)
        for name in names:
            short = rows[name].cast(compact_type(self.numbers[name]))
            rows = rows.set_column(rows.schema.get_field_index(name), name, short)
        return self._in_decimals(rows, names)

    def discard(self) -> None:
        """Delete the files, and the cached columns."""
        self._scan.cached.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def _columns(self) -> pa.Schema:
        return pa.schema([*self.schema][:-1])

    @cached_property
    def _sent(self) -> pa.Schema:
        """Return the schema of the batches that Spark sends."""
        return pa.schema([(one.name, pa.int64() if one.name in self.numbers else one.type) for one in self.schema])

    @cached_property
    def _scan(self) -> _Scan:
        """Read all files once, as no metadata describes the batches, and return what they contain."""
        groups = [
            (file, group) for file in files_in(self.folder) for group in range(pq.read_metadata(file).num_row_groups)
        ]
        found = _Scan()
        with ThreadPoolExecutor(
            min(self.query.sparkSession.sparkContext.defaultParallelism, os.cpu_count() or 1)
        ) as pool:
            looks = deque(pool.submit(self._scan_group, found, *group) for group in groups)
            try:
                while looks and not found.has_long_text:
                    found.add(*looks.popleft().result())  # no other reference to the result remains
            finally:
                pool.shutdown(cancel_futures=True)
        return found

    def _scan_group(self, found: _Scan, file: str, group: int) -> tuple[Chunk, bool, pa.Table]:
        rows = self._batches(file, group)
        sizes = {column.name: int(rows[column.name].nbytes) for column in self._columns if _is_text(column.type)}
        nbytes = int(rows.select(self._columns.names).nbytes) + _SAVED_DECIMAL_BYTES * len(self.numbers) * rows.num_rows
        nbytes = max(nbytes, LEAST_WIDTH * rows.num_rows)
        chunk = Chunk(file, group, 0, rows.num_rows, nbytes, sizes)
        has_long_text = bool(pc.any(rows.column(rows.num_columns - 1)).as_py())
        return chunk, has_long_text, self._in_decimals(_own_columns(rows, self.wanted if found.left > 0 else ()))

    def _batches(self, file: str, group: int) -> pa.Table:
        with pq.ParquetFile(file) as opened:
            messages = opened.read_row_group(group, use_threads=False).column(0)
        return pa.Table.from_batches(_read(messages, self._sent), self._sent)

    def _in_decimals(self, rows: pa.Table, but: Collection[str] = ()) -> pa.Table:
        """Return rows with the types of the query."""
        there = {*rows.column_names} - {*but}
        return decimal_columns(rows, {name: kind for name, kind in self.numbers.items() if name in there})


@dataclass
class _Scan:
    """The contents of the files.

    Attributes:
        chunks: chunks, as in ``BatchFiles``.
        has_long_text: whether any row had too much text.
        cached: wanted columns by the number of their chunk; empty if they exceed the limit.
        left: bytes that may still be cached.
    """

    chunks: list[Chunk] = field(default_factory=list)
    has_long_text: bool = False
    cached: dict[int, pa.Table] = field(default_factory=dict)
    left: int = field(default_factory=lambda: _MAX_CACHED_BYTES)

    def add(self, chunk: Chunk, has_long_text: bool, wanted: pa.Table) -> None:
        """Add the next row group."""
        number = len(self.chunks)
        self.chunks.append(replace(chunk, number=number))
        self.has_long_text |= has_long_text
        self.left -= wanted.nbytes
        if self.left <= 0:
            self.cached.clear()
        elif wanted.num_columns:
            self.cached[number] = wanted


def write_batches(df: DataFrame, folder: str, wanted: Sequence[str] = ()) -> BatchFiles | None:
    """Spool the rows of a plain scan as batches; return None if they must be spooled as Parquet.

    Args:
        df: query, in a session that ``can_spool``. Stages before its last would ignore the session's settings.
        folder: folder of the files.
        wanted: names of columns to cache, see ``BatchFiles``.
    """
    # the plan runs by the settings of the active session, which is this one
    spark, jvm = df.sparkSession, jvm_of(df.sparkSession)
    fields, width = df.schema.fields, estimated_row_bytes(df.schema)
    if width is None or width > _MAX_ROW_BYTES or str(spark.conf.get(_LARGE, "false")).lower() != "false":
        return None
    if len(texts_of(df.schema)) > MOST_TEXTS:
        return None
    names = [column_name(place) for place in range(len(fields) + 1)]
    kinds = [*(_arrow_type(field.dataType) for field in fields), pa.bool_()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    long_decimals = sum(pa.types.is_decimal(kind) and not can_compact(kind) for kind in kinds)
    if _COLUMNS_PER_LONG_DECIMAL * long_decimals > len(fields):
        return None
    if not survives_parquet(df):  # Spark's writer asks for the calendar of old dates and timestamps
        return None
    size = estimated_bytes(df)
    if size is None or _UNCOMPRESSED_RATIO * size > shutil.disk_usage(Path(folder).parent).free:
        return None
    flagged = _with_long_text(df.toDF(*names[:-1]), names[-1])
    files = BatchFiles(df, folder, schema, wanted)
    try:
        query = unscaled(flagged, files.numbers)
        plan = query.queryExecution().executedPlan()
        if str(plan.getClass().getSimpleName()) == _ADAPTIVE or not plan.subqueriesAll().isEmpty():
            return None
        with _SETTINGS_LOCK, settings(spark, {_ROWS: str(_BATCH_ROWS)}):
            batches = query.toArrowBatchRdd(plan)  # lazy: reads nothing yet
        session: Any = spark._jsparkSession
        writer = session.createDataset(batches, class_named(jvm, "org.apache.spark.sql.Encoders").BINARY()).write()
    except Exception as exc:  # another version of Spark may lack the call
        _LOG.debug("rows are copied as Parquet: %s", in_one_line(exc))
        return None
    for name, value in _OPTIONS.items():
        writer = writer.option(name, value)
    writer.parquet(uri_of(folder))
    return files if files_in(folder) else None


def _arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type that Spark sends; the time zone of timestamps is the same in all sessions."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return ARROW_TYPES[data_type.simpleString()]


def _with_long_text(df: DataFrame, name: str) -> DataFrame:
    """Return rows with an additional flag for too much text; flagged rows have NULL in its place."""
    texts = texts_of(df.schema)
    if not texts:
        return df.selectExpr("*", f"false AS {name}")
    # a column, so that Spark evaluates it once a row for all columns of text
    flagged = df.selectExpr("*", f"({text_length(df)}) > {_MAX_ROW_TEXT_BYTES}L AS {name}")
    wanted = [f"IF({name}, NULL, {column}) AS {column}" if column in texts else column for column in df.columns]
    return flagged.selectExpr(*wanted, name)


def _read(messages: pa.ChunkedArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for chunk in messages.chunks:
        _, ends, values = chunk.buffers()
        all_bytes = np.frombuffer(values, np.uint8)
        for begin, end in pairwise(np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]):
            # Copied, because Arrow reads from multiples of eight bytes, and values in pages begin anywhere. Arrow's
            # allocator reuses the memory, where Python returns blocks of this size to the system.
            message = pa.allocate_buffer(int(end - begin))
            np.frombuffer(message, np.uint8)[:] = all_bytes[begin:end]
            yield pa.ipc.read_record_batch(message, schema)


def _own_columns(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the given columns, each in one chunk and in memory of its own: a batch occupies its memory as a whole."""
    kinds = rows.schema
    return pa.table(
        {name: pa.concat_arrays([*rows[name].chunks, pa.array([], kinds.field(name).type)]) for name in columns}
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
