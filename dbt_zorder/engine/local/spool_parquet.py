"""Rows on this machine's disk as Parquet, which Spark wrote and reads."""

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

from dbt_zorder.engine.local.row_estimate import texts_of, width_of
from dbt_zorder.engine.local.spool_folder import OPTIONS, PIECE_BYTES, column_name, files_in, place_of, uri_of
from dbt_zorder.spark.char_types import reader_schema
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.decimals import compact_columns
from dbt_zorder.spark.sql import glob_escape

_ABSENT = 4
"""Bytes that a nested value takes at least, be it NULL, or an empty array's."""


@dataclass(frozen=True)
class Piece:
    """A row group of a copy.

    Attributes:
        path: of its file.
        group: its number there.
        number: among all pieces, in the order in which their rows came.
        rows: how many it has.
        nbytes: that they take in memory, roughly.
        long: the same of each column, or leaf of one, whose values are of any length, by its path in the file: text,
            and all that is nested.
    """

    path: str
    group: int
    number: int
    rows: int
    nbytes: int
    long: Mapping[str, int]


@dataclass(frozen=True)
class RowFiles:
    """The rows of a query.

    Attributes:
        query: that was copied.
        folder: of the copy.
    """

    query: DataFrame
    folder: str

    @property
    def serves_spark(self) -> bool:
        """Whether Spark reads them as they are."""
        return True

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a query with the same columns, which may all be NULL."""
        return frame_of(self.query, self.folder)

    @cached_property
    def pieces(self) -> Sequence[Piece]:
        """Row groups of rows that are of types that ``width_of`` knows, in the order in which they came."""
        fields = dict(enumerate(self.query.schema.fields))
        texts = texts_of(self.query.schema)
        long = {place for place, field in fields.items() if field.name in texts or inner_types(field.dataType)}
        width = width_of(StructType([field for place, field in fields.items() if place not in long])) or 0
        pieces: list[Piece] = []
        for file in files_in(self.folder):
            metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                one = metadata.row_group(group)
                sizes = _long_bytes(one, long)
                size = one.num_rows * width + sum(sizes.values())
                pieces.append(Piece(file, group, len(pieces), one.num_rows, size, sizes))
        return pieces

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a piece, or some of their columns; of a struct one may ask for a leaf: ``c0.id``."""
        with pq.ParquetFile(piece.path) as file:
            return file.read_row_group(piece.group, columns=columns, use_threads=False)

    def read_compact(self, piece: Piece, names: Collection[str]) -> pa.Table:
        """Return the rows of a piece, some decimals of them as ``pack_decimals`` makes them."""
        return compact_columns(self.read(piece), names)

    def discard(self) -> None:
        """Delete them."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_rows(df: DataFrame, behind: Sequence[str], folder: str) -> RowFiles | None:
    """Copy the rows of a query; None where this process does not see what Spark has written.

    Args:
        df: the query.
        behind: SQL text of what each row is to have besides.
        folder: of the copy.
    """
    wanted = df.selectExpr("*", *behind).toDF(*map(column_name, range(len(df.columns) + len(behind))))
    # what is NULL or repeats takes no room on disk, and as much in memory as all else
    most_rows = PIECE_BYTES // (width_of(df.schema, nested=True) or PIECE_BYTES)
    wanted.write.options(**OPTIONS, maxRecordsPerFile=most_rows if most_rows > 1 else 0).parquet(uri_of(folder))
    return RowFiles(df, folder) if files_in(folder) else None


def frame_of(query: DataFrame, folder: str) -> DataFrame:
    """Return the rows of a query that are in files, by numbered names, as a query with its columns."""
    fields = query.schema.fields
    named = [StructField(column_name(place), field.dataType) for place, field in enumerate(fields)]
    rows = query.sparkSession.read.schema(reader_schema(StructType(named))).parquet(glob_escape(uri_of(folder)))
    return rows.select(
        *(f.col(column_name(place)).alias(field.name, metadata=field.metadata) for place, field in enumerate(fields))
    )


def _long_bytes(group: pq.RowGroupMetaData, places: Collection[int]) -> dict[str, int]:
    """Return what some columns of a row group, by their number, take in memory, roughly: by path of each leaf."""
    sizes: dict[str, int] = {}
    for leaf in map(group.column, range(group.num_columns if places else 0)):
        top, *below = leaf.path_in_schema.split(".")
        if place_of(top) in places:
            # in Parquet's pages, without a dictionary, text takes what it takes in memory; where a nested value is not,
            # Arrow has room for it or says so
            sizes[leaf.path_in_schema] = leaf.total_uncompressed_size + (_ABSENT * leaf.num_values if below else 0)
    return sizes
