"""The rows of a batch for the duration of a merge: numbered, and read from their query once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.keep_result import kept

ROW = "__zorder_row"
"""Column with the number of a row in its batch."""


@dataclass(frozen=True)
class NumberedRows:
    """The rows of a batch.

    Attributes:
        rows: columns of the table, and ``ROW``.
        columns: names of the table's columns.
    """

    rows: DataFrame
    columns: list[str]


@contextlib.contextmanager
def numbered_rows(batch: DataFrame) -> Iterator[NumberedRows]:
    """Yield the rows of a batch with their numbers.

    A merge reads its batch three times, which must be the same rows under the same numbers. So the result of the query
    is kept, whatever the query is.
    """
    with kept(batch.withColumn(ROW, f.monotonically_increasing_id())) as rows:
        yield NumberedRows(rows, batch.columns)
