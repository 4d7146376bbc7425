"""Rows of a small query, held in this process: placed here, and written by Arrow as Spark would write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.layout.fetched import Fetched
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.placing import rows_of_files
from dbt_zorder.layout.sizing import SPLIT_ABOVE, auto_size, parse_size
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.table.arrow_files import ArrowWriter

TELLING_ROWS = 20_000
"""Of so many rows, drawn from all, the bytes of a row are learned."""


@dataclass(frozen=True)
class HeldRows:
    """All rows of a query, and how they are written.

    Attributes:
        fetched: the rows.
        writer: of their files.
    """

    fetched: Fetched
    writer: ArrowWriter

    def write(self, spark: SparkSession, layout: Layout, path: str) -> bool:
        """Write the rows to a folder, one file each of the layout's that gets any.

        Returns:
            That they are written.

        Raises:
            BuildError: the disk refused, or the folder lies elsewhere by now.
        """
        place = self.writer.place_of(spark, path)
        self.writer.write(self.fetched, rows_of_files(self.fetched.keys, layout, self.writer.threads).values(), place)
        return True

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Let a spec know what a row takes on disk, roughly, where it asks for a size and nothing else tells."""
        return with_row_bytes(spec, self.fetched.count, self.fetched.rows.nbytes, self._few, self.writer)

    def measured_row(self, layout: Layout, files: Sequence[int]) -> float | None:
        """Return the bytes that a row takes in some files of a layout, None if they have no rows."""
        found = rows_of_files(self.fetched.keys, layout, self.writer.threads)
        chosen = [found[file] for file in files if file in found]
        rows = sum(map(len, chosen))
        size = sum(self.writer.size_of(self.fetched.rows.take(pa.array(one))) for one in chosen)
        return size / rows if rows else None

    def _few(self) -> pa.Table:
        rows = self.fetched.rows
        # not each third one, of which id % 6 would have two values
        chosen = np.random.default_rng(0).choice(rows.num_rows, min(TELLING_ROWS, rows.num_rows), replace=False)
        return rows.take(pa.array(np.sort(chosen)))


def with_row_bytes(
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
