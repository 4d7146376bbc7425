"""Bounds that a format keeps of its files, as stats in this process's memory: to let Spark read them takes a query.

Both formats keep one number or text for each; what is not known here for sure is left to Spark.
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


class UnknownValueError(Exception):
    """A bound is not what its type would have it be."""


@dataclass(frozen=True)
class FileValues:
    """What a format says of one file.

    Attributes:
        path: of it, as Spark spells it.
        size: bytes.
        rows: their number, None if it is not told.
        bounds: least value, greatest value and count of NULL of each column, what is not told as None; values as Arrow
            takes them for its type.
    """

    path: str
    size: int
    rows: int | None
    bounds: Sequence[tuple[Any, Any, int | None]]


def arrow_type(data_type: t.DataType) -> pa.DataType | None:
    """Return what Arrow calls the type of a column whose bounds are read here, None if Spark is to read them."""
    if isinstance(data_type, t.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return None if isinstance(data_type, t.BinaryType) else ARROW_TYPES.get(data_type.simpleString())


def local_stats(
    spark: SparkSession, files: Sequence[FileValues], columns: Sequence[ResolvedColumn], version: str
) -> LocalStats:
    """Return what a format says of some files in the shape of ``stats_schema``.

    Args:
        spark: the session.
        files: as the format has them.
        columns: of which the bounds are, each of a type that ``arrow_type`` knows.
        version: of the table.

    Raises:
        UnknownValueError: a value is not of its column's type.
    """
    try:
        of_columns = [
            _column([file.bounds[number] for file in files], arrow_type(column.data_type))
            for number, column in enumerate(columns)
        ]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
        raise UnknownValueError(str(exc)) from exc
    names = [column.name for column in columns]
    told = pa.StructArray.from_arrays(of_columns, names) if names else pa.array([{}] * len(files), pa.struct([]))
    rows = pa.table(
        {
            "file_path": pa.array([file.path for file in files], pa.string()),
            "file_size": pa.array([file.size for file in files], pa.int64()),
            "row_count": pa.array([file.rows for file in files], pa.int64()),
            "version": pa.array([version] * len(files), pa.string()),
            "columns": told,
        }
    )
    return LocalStats(spark, rows, stats_schema({column.name: column.data_type for column in columns}))


def _column(bounds: Sequence[tuple[Any, Any, int | None]], kind: pa.DataType | None) -> pa.Array:
    low, high = (pa.array([one[side] for one in bounds], kind) for side in (0, 1))
    nulls = pa.array([one[2] for one in bounds], pa.int64())
    return pa.StructArray.from_arrays([low, high, nulls], ["min_value", "max_value", "null_count"])
