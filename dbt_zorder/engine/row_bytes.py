"""What a row takes on disk, before any of a new table is written: by the table as it was, or by some of its rows."""

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


def by_version_before(
    spec: LayoutSpec,
    df: DataFrame,
    before: TableInfo,
    files: Callable[[], pa.Table | None],
) -> LayoutSpec:
    """Take the size of a row from the table as it was, where its columns are the same: measured beats estimated.

    Args:
        spec: how to lay out.
        df: the query.
        before: the table as it was.
        files: asks for bytes and rows of each of its files; called only where they count.
    """
    if spec.files is not None or {column[0] for column in before.columns} != set(df.columns):
        return spec
    return replace(spec, row_bytes=row_bytes_in_files(files(), parse_size(spec.file_size)))


def by_some_rows(
    spec: LayoutSpec, rows: int, nbytes: int, few: Callable[[], pa.Table], writer: ArrowWriter
) -> LayoutSpec:
    """Let a spec know what a row takes on disk, roughly, where it asks for a size and nothing else tells.

    Args:
        spec: what was asked for.
        rows: their number.
        nbytes: that they take in memory.
        few: gives some of them, as they are written.
        writer: of their files.
    """
    if spec.files is not None or spec.row_bytes is not None or not rows:
        return spec
    one_file = SPLIT_ABOVE * (parse_size(spec.file_size) or auto_size(0))
    if nbytes < one_file:
        return replace(spec, row_bytes=nbytes / rows)
    some = few()
    return replace(spec, row_bytes=writer.size_of(some) / some.num_rows)


@dataclass
class Share:
    """The rows of one part of a file: how many they are, and the bytes that they take in memory."""

    rows: int = 0
    nbytes: int = 0


class Measuring(Protocol):
    """Measures files of a layout."""

    def size_of(self, layout: Layout, files: Sequence[int]) -> Share:
        """Return how many rows some files have, and how many bytes these take as they are written."""
        ...
