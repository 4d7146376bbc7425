"""Rows of a small query, held in this process: placed here, and written by Arrow as Spark would write them."""

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
"""Of so many rows, drawn from all, the bytes of a row are learned."""


@dataclass(frozen=True)
class InMemoryRows:
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
        return with_sampled_row_bytes(
            spec, self.fetched.count, self.fetched.rows.nbytes, self._sample_rows, self.writer
        )

    def size_of(self, layout: Layout, files: Sequence[int]) -> DataSize:
        """Return how many rows some files have, and how many bytes these take as they are written."""
        found = rows_of_files(self.fetched.keys, layout, self.writer.threads)
        chosen = [found[file] for file in files if file in found]

        def size(rows: Rows) -> int:
            return self.writer.size_of(self.fetched.rows.take(pa.array(rows)))

        with ThreadPoolExecutor(self.writer.threads) as pool:
            return DataSize(sum(map(len, chosen)), sum(pool.map(size, chosen)))

    def _sample_rows(self) -> pa.Table:
        # not each third one, of which id % 6 would have two values
        count = self.fetched.count
        chosen = np.random.default_rng(0).choice(count, min(SAMPLE_ROWS, count), replace=False)
        return self.fetched.rows.take(pa.array(np.sort(chosen)))
