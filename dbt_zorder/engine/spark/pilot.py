"""Measures rows and bytes of a few files of a layout, if Spark places and writes rows: it writes pilot files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.row_bytes import DataSize
from dbt_zorder.engine.spark.descent import TemporaryColumns, add_node
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.files import delete_path
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.stats.listing import data_files


@dataclass(frozen=True)
class SparkFileMeasurer:
    """The rows of a query that Spark places and writes.

    Attributes:
        rows: query.
        folder: folder for temporary files.
        write: function that places rows by a layout, and writes them to a folder as the table's files are written.
    """

    rows: DataFrame
    folder: str
    write: Callable[[Layout, DataFrame, str], None]

    def size_of(self, layout: Layout, files: Sequence[int]) -> DataSize:
        """Return the rows and bytes of the given files, see ``FileMeasurer``; this runs the query once more.

        Files that share a cell by a hash are measured together.
        """
        spark = self.rows.sparkSession
        try:
            self.write(layout, self._rows_of(layout, files), self.folder)
            size = sum(data_files(spark, self.folder).values())
            written = spark.read.schema(self.rows.schema).parquet(glob_escape(self.folder))
            return DataSize(written.count(), size)
        finally:
            delete_path(spark, self.folder)

    def _rows_of(self, layout: Layout, files: Sequence[int]) -> DataFrame:
        names = TemporaryColumns.beside(self.rows)
        placed = add_node(self.rows, replace(layout, levels=layout.levels[: layout.file_levels]), names)
        cells = np.unique(np.searchsorted(layout.first_file, files, side="right") - 1)
        return _rows_where(placed, f.col(names.node).isin(cells.tolist())).drop(*names.all)


def _rows_where(placed: DataFrame, condition: Column) -> DataFrame:
    """Return the rows whose cell satisfies a condition.

    Spark would push the condition down to the query's rows. It would repeat all steps to the cell wherever the next one
    uses them: the text doubles with every level. Spark does not push a condition through a nondeterministic column.
    """
    number = f"{TemporaryColumns.beside(placed).node}_number"
    numbered = placed.withColumn(number, f.monotonically_increasing_id())
    return numbered.filter(condition & (f.col(number) >= 0)).drop(number)
