"""Convert a format's bounds to stats in this process's memory, where Spark would need a query.

Both formats store one number or text for each bound; Spark reads every type that is not certain here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.spark.arrow import ARROW_TYPES
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.schema import stats_schema


class UnreadableValueError(Exception):
    """A bound does not fit its type, or only Spark can read it."""


@dataclass(frozen=True)
class FileValues:
    """The statistics that a format stores of one file.

    Attributes:
        path: its path as Spark spells it.
        size: its size in bytes.
        rows: its number of rows; None if it is missing.
        bounds: min_value, max_value and null_count of each column, None if missing; each value is a Python value that
            Arrow accepts for the column's type.
    """

    path: str
    size: int
    rows: int | None
    bounds: Sequence[tuple[Any, Any, int | None]]


def arrow_type(data_type: t.DataType) -> pa.DataType | None:
    """Return Arrow's type of a column whose bounds are read here; None if Spark must read them."""
    if isinstance(data_type, t.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return None if isinstance(data_type, t.BinaryType) else ARROW_TYPES.get(data_type.simpleString())


def local_stats(
    spark: SparkSession, files: Sequence[FileValues], columns: Sequence[ResolvedColumn], version: str
) -> LocalStats:
    """Return a format's statistics in the shape of ``stats_schema``.

    Args:
        spark: the session.
        files: the statistics of each file.
        columns: the columns of the bounds, each of a type that ``arrow_type`` supports.
        version: the version of the table.

    Raises:
        UnreadableValueError: a value does not fit its column's type.
    """
    try:
        of_columns = [
            _column([file.bounds[number] for file in files], arrow_type(column.data_type))
            for number, column in enumerate(columns)
        ]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise UnreadableValueError(str(exc)) from exc
    names = [column.name for column in columns]
    per_column = pa.StructArray.from_arrays(of_columns, names) if names else pa.array([{}] * len(files), pa.struct([]))
    rows = pa.table(
        {
            "file_path": pa.array([file.path for file in files], pa.string()),
            "file_size": pa.array([file.size for file in files], pa.int64()),
            "row_count": pa.array([file.rows for file in files], pa.int64()),
            "version": pa.array([version] * len(files), pa.string()),
            "columns": per_column,
        }
    )
    return LocalStats(spark, rows, stats_schema({column.name: column.data_type for column in columns}))


def _column(bounds: Sequence[tuple[Any, Any, int | None]], kind: pa.DataType | None) -> pa.Array:
    low, high = (pa.array([one[side] for one in bounds], kind) for side in (0, 1))
    nulls = pa.array([one[2] for one in bounds], pa.int64())
    return pa.StructArray.from_arrays([low, high, nulls], ["min_value", "max_value", "null_count"])
