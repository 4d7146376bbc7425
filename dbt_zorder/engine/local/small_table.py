"""Places the rows of a small query in memory, and writes them by Arrow as Spark would write them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.place import rows_of_files
from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.engine.row_bytes import DataSize, with_sampled_row_bytes
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec

SAMPLE_ROWS = 20_000
"""Number of sampled rows that the bytes per row are measured on."""


@dataclass(frozen=True)
class InMemoryRows:
    """All rows of a query, in this process's memory.

    Attributes:
        fetched: rows, keys and partition folders.
        writer: writer of the files.
    """

    fetched: Fetched
    writer: ArrowWriter

    def write(self, spark: SparkSession, layout: Layout, path: str) -> bool:
        """Write the rows to a folder, one file for each file of the layout that has rows.

        Returns:
            True: these rows are always written.

        Raises:
            BuildError: the disk refused the write, or the folder has moved.
        """
        place = self.writer.place_of(spark, path)
        self.writer.write(self.fetched, rows_of_files(self.fetched.keys, layout, self.writer.threads).values(), place)
        return True

    def with_row_bytes(self, spec: LayoutSpec) -> LayoutSpec:
        """Set the bytes per row from a sample, if the spec asks for a size and no better figure exists."""
        return with_sampled_row_bytes(
            spec, self.fetched.count, self.fetched.rows.nbytes, self._sample_rows, self.writer
        )

    def size_of(self, layout: Layout, files: Sequence[int]) -> DataSize:
        """Return the number of rows in the given files, and the bytes that these files occupy on disk."""
        found = rows_of_files(self.fetched.keys, layout, self.writer.threads)
        chosen = [found[file] for file in files if file in found]

        def size(rows: Rows) -> int:
            return self.writer.size_of(self.fetched.rows.take(pa.array(rows)))

        with ThreadPoolExecutor(self.writer.threads) as pool:
            return DataSize(sum(map(len, chosen)), sum(pool.map(size, chosen)))

    def _sample_rows(self) -> pa.Table:
        # drawn at random: with every third row, id % 6 would have only two values
        count = self.fetched.count
        chosen = np.random.default_rng(0).choice(count, min(SAMPLE_ROWS, count), replace=False)
        return self.fetched.rows.take(pa.array(np.sort(chosen)))
