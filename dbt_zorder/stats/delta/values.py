"""Read the statistics of a Delta table's files: JSON in each ``add`` action (Delta protocol, per-file statistics)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.stats.bounds_json import FileValues, UnreadableValueError, arrow_type
from dbt_zorder.stats.schema import columns_struct

_CUT = timedelta(milliseconds=1)
"""Delta truncates microseconds, so the true maximum may be later than the stored one by up to this duration."""


def has_statistics(data_type: DataType) -> bool:
    """Return whether Delta keeps bounds for columns of a type."""
    return isinstance(data_type, (NumericType, DateType, TimestampType, TimestampNTZType, StringType))


def delta_values(
    actions: Sequence[Mapping[str, Any]], folder: str, columns: Sequence[ResolvedColumn]
) -> list[FileValues]:
    """Return the statistics in ``add`` actions, parsed in this process.

    Delta truncates strings to 32 characters that still enclose the value; booleans have no bounds.

    Args:
        actions: the ``add`` actions as parsed JSON, with path, size and statistics.
        folder: the folder of the table.
        columns: the columns by their physical names in the statistics.

    Raises:
        UnreadableValueError: Spark must read the statistics.
    """
    if any(arrow_type(column.data_type) is None for column in columns):
        msg = "a type that is not read here"
        raise UnreadableValueError(msg)
    try:
        return [_of_file(action, folder, columns) for action in actions]
    except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError) as exc:
        raise UnreadableValueError(str(exc)) from exc


def delta_stats_query(
    files: DataFrame, folder: str, version: str, stored: Sequence[ResolvedColumn], columns: Sequence[ResolvedColumn]
) -> DataFrame:
    """Return the same as a Spark query with the schema of :mod:`dbt_zorder.stats.schema`.

    Args:
        files: the paths, sizes and statistics of the files.
        folder: the folder of the table.
        version: the version of the table.
        stored: the columns by their physical names in the statistics.
        columns: the same columns by the table's own names.
    """
    below = f.concat(f.lit(f"{folder}/"), "path")
    rows = files.select(
        f.when(f.col("path").contains(":/"), f.col("path")).otherwise(below).alias("file_path"),
        f.col("size").alias("file_size"),
        f.from_json("stats", type_ddl(_json_type(stored))).alias("kept"),
    )
    return rows.select(
        "file_path",
        "file_size",
        f.col("kept.numRecords").alias("row_count"),
        f.lit(version).alias("version"),
        *columns_struct([f.expr(_bounds(a)).alias(b.name) for a, b in zip(stored, columns, strict=True)]),
    )


def _of_file(action: Mapping[str, Any], folder: str, columns: Sequence[ResolvedColumn]) -> FileValues:
    stats = json.loads(action.get("stats") or "{}", parse_float=Decimal)
    sides = [stats.get(side, {}) for side in ("minValues", "maxValues", "nullCount")]
    path = action["path"]
    return FileValues(
        path if ":/" in path else f"{folder}/{path}",
        action["size"],
        stats.get("numRecords"),
        [_of_column(sides, column) for column in columns],
    )


def _of_column(sides: Sequence[Any], column: ResolvedColumn) -> tuple[Any, Any, int | None]:
    low, high, nulls = (_at(side, column.path) for side in sides)
    if not has_statistics(column.data_type):
        return None, None, nulls
    low, high = (None if one is None else _value(one, column.data_type) for one in (low, high))
    return low, high + _CUT if isinstance(high, datetime) else high, nulls


def _at(side: Any, path: Sequence[str]) -> Any:
    for name in path:
        side = None if side is None else side.get(name)
    return side


def _value(value: Any, kind: DataType) -> Any:
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, (FloatType, DoubleType)):
        return float(value)
    if isinstance(kind, DateType):
        return date.fromisoformat(value)
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        moment = datetime.fromisoformat(f"{value[:-1]}+00:00" if value.endswith("Z") else value)  # Python 3.10 has no Z
        if (moment.tzinfo is None) is isinstance(kind, TimestampType):
            raise ValueError(value)
        return moment
    return value


def _json_type(columns: Sequence[ResolvedColumn]) -> StructType:
    values = _nested([(column.path, column.data_type) for column in columns])
    counts = _nested([(column.path, LongType()) for column in columns])
    kept = [("minValues", values), ("maxValues", values), ("nullCount", counts)]
    return StructType(
        [StructField("numRecords", LongType()), *(StructField(name, kind) for name, kind in kept if columns)]
    )


def _nested(leaves: Sequence[tuple[tuple[str, ...], DataType]]) -> StructType:
    """Return a struct type with leaves at these paths."""
    fields = []
    for name in dict.fromkeys(path[0] for path, _ in leaves):
        below = [(path[1:], kind) for path, kind in leaves if path[0] == name]
        fields.append(StructField(name, below[0][1] if not below[0][0] else _nested(below)))
    return StructType(fields)


def _bounds(column: ResolvedColumn) -> str:
    kind = type_ddl(column.data_type)
    low, high = (
        f"kept.{side}.{column.sql}" if has_statistics(column.data_type) else f"CAST(NULL AS {kind})"
        for side in ("minValues", "maxValues")
    )
    if isinstance(column.data_type, (TimestampType, TimestampNTZType)):
        high = f"try_add({high}, INTERVAL '0.001' SECOND)"  # Delta truncates microseconds
    return f"named_struct('min_value', {low}, 'max_value', {high}, 'null_count', kept.nullCount.{column.sql})"
