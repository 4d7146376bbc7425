"""Rows of a small query, held in this process: placed here, and written by Arrow as Spark would write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.fetched_keys import Fetched, FetchedKeys
from dbt_zorder.engine.local.place import rows_of_files
from dbt_zorder.engine.local.shuffle import Share
from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.engine.row_bytes import by_some_rows
from dbt_zorder.engine.spark.pilot import ROWS_OF_FILE
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.lengths import lengths_of_files, row_lengths
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.sample import drawn_rows
from dbt_zorder.layout.spec import LayoutSpec

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
        return by_some_rows(spec, self.fetched.count, self.fetched.rows.nbytes, self._few, self.writer)

    def lengths(self, layout: Layout) -> npt.NDArray[np.float64]:
        """Return by file how long a row is in the mean before it is encoded; NaN where no row was seen."""
        some = self._drawn(max(TELLING_ROWS, ROWS_OF_FILE * layout.files))
        return lengths_of_files(layout, self.fetched.keys.take(some), row_lengths(self.fetched.rows.take(some)))

    def sizes(self, layout: Layout, files: Sequence[int]) -> Mapping[int, Share]:
        """Return rows and bytes of some files as they are written, of those that have rows."""
        found = rows_of_files(self.fetched.keys, layout, self.writer.threads)
        chosen = [file for file in files if file in found]

        def size(file: int) -> Share:
            rows = found[file]
            return Share(len(rows), self.writer.size_of(self.fetched.rows.take(pa.array(rows))))

        with ThreadPoolExecutor(self.writer.threads) as pool:
            return dict(zip(chosen, pool.map(size, chosen), strict=True))

    def drawn(self, plan: Plan, rows: int) -> tuple[FetchedKeys, npt.NDArray[np.float64]]:
        """Return what so many rows are placed by, drawn from all, and how long each is."""
        some = pa.array(drawn_rows(self.fetched.count, rows, plan.drawn.spec.seed))
        return FetchedKeys(self.fetched.keys.take(some)), row_lengths(self.fetched.rows.take(some))

    def _few(self) -> pa.Table:
        return self.fetched.rows.take(self._drawn(TELLING_ROWS))

    def _drawn(self, rows: int) -> pa.Array:
        # not each third one, of which id % 6 would have two values
        count = self.fetched.count
        return pa.array(np.sort(np.random.default_rng(0).choice(count, min(rows, count), replace=False)))
