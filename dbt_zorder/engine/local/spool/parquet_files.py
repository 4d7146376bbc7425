"""Spools rows as Parquet files, which Spark can read as well."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes, texts_of
from dbt_zorder.engine.local.spool.folder import CHUNK_BYTES, OPTIONS, column_name, files_in, place_of, uri_of
from dbt_zorder.spark.char_types import reader_schema
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.decimals import compact_columns
from dbt_zorder.spark.sql import glob_escape

_ABSENT = 4
"""Minimum bytes of a nested value, including NULL and an empty array."""


@dataclass(frozen=True)
class Chunk:
    """A row group of a spool.

    Attributes:
        path: path of its file.
        group: number of the row group in the file.
        number: number among all chunks, in the order in which their rows came.
        rows: number of rows.
        nbytes: approximate bytes of the rows in memory.
        long: approximate bytes of each leaf of variable length, by its path in the file: text, and everything nested.
    """

    path: str
    group: int
    number: int
    rows: int
    nbytes: int
    long: Mapping[str, int]


@dataclass(frozen=True)
class RowFiles:
    """Parquet files with the rows of a query.

    Attributes:
        query: query that was spooled.
        folder: folder of the files.
    """

    query: DataFrame
    folder: str

    @property
    def serves_spark(self) -> bool:
        """Return True: Spark reads these files."""
        return True

    @cached_property
    def frame(self) -> DataFrame:
        """Return a query over the rows with the same columns, all nullable."""
        return spooled_query(self.query, self.folder)

    @cached_property
    def chunks(self) -> Sequence[Chunk]:
        """Return the row groups in the order in which rows came; ``estimated_row_bytes`` must support all types."""
        fields = dict(enumerate(self.query.schema.fields))
        texts = texts_of(self.query.schema)
        long = {place for place, field in fields.items() if field.name in texts or inner_types(field.dataType)}
        width = estimated_row_bytes(StructType([field for place, field in fields.items() if place not in long])) or 0
        chunks: list[Chunk] = []
        for file in files_in(self.folder):
            metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                one = metadata.row_group(group)
                sizes = _long_bytes(one, long)
                size = one.num_rows * width + sum(sizes.values())
                chunks.append(Chunk(file, group, len(chunks), one.num_rows, size, sizes))
        return chunks

    def read(self, chunk: Chunk, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a chunk, or only the given columns; a column may be the leaf of a struct: ``c0.id``."""
        with pq.ParquetFile(chunk.path) as file:
            return file.read_row_group(chunk.group, columns=columns, use_threads=False)

    def read_compact(self, chunk: Chunk, names: Collection[str]) -> pa.Table:
        """Return the rows of a chunk, with the named decimals packed as by ``pack_decimals``."""
        return compact_columns(self.read(chunk), names)

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_row_files(df: DataFrame, extra_columns: Sequence[str], folder: str) -> RowFiles | None:
    """Spool the rows of a query; return None if this process cannot see the files that Spark wrote.

    Args:
        df: query to spool.
        extra_columns: SQL text of additional columns.
        folder: folder of the files.
    """
    wanted = df.selectExpr("*", *extra_columns).toDF(*map(column_name, range(len(df.columns) + len(extra_columns))))
    # NULL and repeated values are free on disk, but occupy as much memory as all others
    most_rows = CHUNK_BYTES // (estimated_row_bytes(df.schema, nested=True) or CHUNK_BYTES)
    wanted.write.options(**OPTIONS, maxRecordsPerFile=most_rows if most_rows > 1 else 0).parquet(uri_of(folder))
    return RowFiles(df, folder) if files_in(folder) else None


def spooled_query(query: DataFrame, folder: str) -> DataFrame:
    """Return a query over files with numbered column names, with the columns of the spooled query."""
    fields = query.schema.fields
    named = [StructField(column_name(place), field.dataType) for place, field in enumerate(fields)]
    rows = query.sparkSession.read.schema(reader_schema(StructType(named))).parquet(glob_escape(uri_of(folder)))
    return rows.select(
        *(f.col(column_name(place)).alias(field.name, metadata=field.metadata) for place, field in enumerate(fields))
    )


def _long_bytes(group: pq.RowGroupMetaData, places: Collection[int]) -> dict[str, int]:
    """Return the approximate bytes in memory of the given columns of a row group, by path of each leaf."""
    sizes: dict[str, int] = {}
    for leaf in map(group.column, range(group.num_columns if places else 0)):
        top, *below = leaf.path_in_schema.split(".")
        if place_of(top) in places:
            # In Parquet's pages without a dictionary, text is as long as in memory. Arrow also stores the absence of a
            # nested value.
            sizes[leaf.path_in_schema] = leaf.total_uncompressed_size + (_ABSENT * leaf.num_values if below else 0)
    return sizes
