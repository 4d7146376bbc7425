"""Estimates the bytes per row on disk before any file is written, from the previous version or from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.layout.file_count import SPLIT_ABOVE, auto_size, parse_size, row_bytes_in_files
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableInfo


def with_previous_row_bytes(
    spec: LayoutSpec,
    df: DataFrame,
    before: TableInfo,
    files: Callable[[], pa.Table | None],
) -> LayoutSpec:
    """Set the bytes per row from the previous version of the table, if its columns are the same.

    Measured sizes are more accurate than estimates.

    Args:
        spec: layout specification.
        df: query of the new version.
        before: catalog entry of the previous version.
        files: function that reads the bytes and rows of each previous file; called only if the sizes are needed.
    """
    if spec.files is not None or {column[0] for column in before.columns} != set(df.columns):
        return spec
    return replace(spec, row_bytes=row_bytes_in_files(files(), parse_size(spec.file_size)))


def with_sampled_row_bytes(
    spec: LayoutSpec, rows: int, nbytes: int, sample: Callable[[], pa.Table], writer: ArrowWriter
) -> LayoutSpec:
    """Set the bytes per row from a sample, if the spec asks for a size and no better figure exists.

    Args:
        spec: layout specification.
        rows: number of rows.
        nbytes: bytes of all rows in memory.
        sample: function that returns a sample of the rows, with the columns of the files.
        writer: writer of the files.
    """
    if spec.files is not None or spec.row_bytes is not None or not rows:
        return spec
    one_file = SPLIT_ABOVE * (parse_size(spec.file_size) or auto_size(0))
    if nbytes < one_file:
        return replace(spec, row_bytes=nbytes / rows)
    drawn = sample()
    return replace(spec, row_bytes=writer.size_of(drawn) / drawn.num_rows)


@dataclass
class DataSize:
    """The number of rows of a part of a file, and their bytes in memory."""

    rows: int = 0
    nbytes: int = 0


class FileMeasurer(Protocol):
    """Measures files of a layout."""

    def size_of(self, layout: Layout, files: Sequence[int]) -> DataSize:
        """Return the number of rows in the given files, and the bytes that these files occupy on disk."""
        ...
