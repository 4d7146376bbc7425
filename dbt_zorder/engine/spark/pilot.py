"""What rows of a layout's files take, where Spark places and writes them: measured on files that are written for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.local.fetched_keys import FetchedKeys
from dbt_zorder.engine.local.shuffle import Share
from dbt_zorder.engine.spark.descent import Names, add_node
from dbt_zorder.layout.box import box_sql
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.lengths import length_sql
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.sample import drawn_keys
from dbt_zorder.spark.files import delete_path
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.stats.listing import below_uri, list_data

ROWS_OF_FILE = 40
"""Of so many rows of each file, the lengths are asked for."""
_SEEN_ROWS = 100_000
"""Of so many rows, of a table of fewer files."""
_MOST_BOXES = 8
"""Files whose rows are asked for by their boxes, which takes a row less time than to find its cell; of more, the
generated code would be too long to be compiled."""


class Measuring(Protocol):
    """Tells of the rows of a layout's files."""

    def lengths(self, layout: Layout) -> npt.NDArray[np.float64]:
        """Return by file how long a row is in the mean before it is encoded; NaN where no row was seen."""
        ...

    def sizes(self, layout: Layout, files: Sequence[int]) -> Mapping[int, Share]:
        """Return rows and bytes of some files as they are written, of those that have rows."""
        ...

    def drawn(self, plan: Plan, rows: int) -> tuple[FetchedKeys | pa.Table, npt.NDArray[np.float64]]:
        """Return what about so many rows are placed by, drawn from all, as ``redrawn`` takes it, and their lengths."""
        ...


@dataclass(frozen=True)
class MeasuredBySpark:
    """The rows of a query that Spark places and writes.

    Attributes:
        rows: the query.
        folder: where files may be written for a while.
        write: places rows by a layout, and writes them to a folder as the table's are written.
        readable: gives partition columns that were read back the values that the query has.
    """

    rows: DataFrame
    folder: str
    write: Callable[[Layout, DataFrame, str], None]
    readable: Callable[[DataFrame], DataFrame]

    def lengths(self, layout: Layout) -> npt.NDArray[np.float64]:
        """Return what ``Measuring`` asks for, by some rows of all."""
        some, wanted = self.rows, max(_SEEN_ROWS, ROWS_OF_FILE * layout.files)
        if layout.rows > wanted:
            some = some.sample(fraction=wanted / layout.rows, seed=0)
        placed, cell = _with_cell(some, layout)
        length = f.avg(f.expr(f"CAST({length_sql(self.rows.schema)} AS DOUBLE)"))
        found = np.full(layout.files, np.nan)
        for row in placed.groupBy(cell.alias("cell")).agg(length).collect():
            found[_files_of(layout, row[0])] = row[1]
        return found

    def sizes(self, layout: Layout, files: Sequence[int]) -> Mapping[int, Share]:
        """Return what ``Measuring`` asks for; the query runs for it once more.

        Files that share a cell by a hash are told of together, as one.
        """
        spark = self.rows.sparkSession
        asked = {_cell_of(layout, file): file for file in reversed(files)}
        found: dict[int, Share] = {}
        try:
            self.write(layout, self._rows_of(layout, asked), self.folder)
            sizes = list_data(spark, self.folder)
            # by the types of the query: folders of a partition might read as others
            written = self.readable(spark.read.schema(self.rows.schema).parquet(glob_escape(self.folder)))
            placed, cell = _with_cell(written, layout)
            cells_of: dict[str, dict[int, int]] = defaultdict(dict)
            for path, number, rows in placed.groupBy(f.input_file_name(), cell).count().collect():
                cells_of[below_uri(self.folder, path)][number] = rows
            for path, cells in cells_of.items():
                # a moment that is written less exactly than it was may lie before the cut of its file
                number = asked.get(max(cells, key=lambda one: cells[one]))
                if number is not None:
                    share = found.setdefault(number, Share())
                    share.rows += sum(cells.values())
                    share.nbytes += sizes[path]
        finally:
            delete_path(spark, self.folder)
        return found

    def drawn(self, plan: Plan, rows: int) -> tuple[pa.Table, npt.NDArray[np.float64]]:
        """Return what ``Measuring`` asks for; the query runs for it once more."""
        known = plan.drawn
        length = f"CAST({length_sql(self.rows.schema)} AS DOUBLE)"
        found = drawn_keys(self.rows, known.sampled, rows, known.rows, known.spec.seed, known.partition_hash, [length])
        return found.drop(["m0"]), found["m0"].to_numpy()

    def _rows_of(self, layout: Layout, cells: Mapping[int, int]) -> DataFrame:
        """Return the rows of some cells, each of which is known by a file of it."""
        boxes = [box_sql(layout, file) for file in cells.values()] if len(cells) <= _MOST_BOXES else [None]
        if None not in boxes:
            return self.rows.filter(" OR ".join(f"({box})" for box in boxes))
        placed, cell = _with_cell(self.rows, layout)
        return _kept(placed, cell.isin(list(cells))).drop(*Names.beside(self.rows).all)


def _with_cell(df: DataFrame, layout: Layout) -> tuple[DataFrame, Column]:
    """Return rows beside what ``Names`` has, and the cell of the last file level of each."""
    names = Names.beside(df)
    return add_node(df, replace(layout, levels=layout.levels[: layout.file_levels]), names), f.col(names.node)


def _kept(placed: DataFrame, condition: Column) -> DataFrame:
    """Return the rows for which a condition on their cell holds.

    Spark would ask it of the query's rows instead, with all steps to the cell written out each time that the next one
    uses it: a text that doubles with every level. It does not where the rows have a column that is not deterministic.
    """
    number = f"{Names.beside(placed).node}_number"
    numbered = placed.withColumn(number, f.monotonically_increasing_id())
    return numbered.filter(condition & (f.col(number) >= 0)).drop(number)


def _cell_of(layout: Layout, file: int) -> int:
    return int(np.searchsorted(layout.first_file, file, side="right")) - 1


def _files_of(layout: Layout, cell: int) -> slice:
    first = int(layout.first_file[cell])
    return slice(first, first + int(layout.file_count[cell]))
