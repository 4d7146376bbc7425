"""Make the ``add`` action of each new file of a Delta table, with its statistics.

The statistics are those of Delta's own writer ("Per-file Statistics" of the Delta protocol): min, max and null count
of the columns for which the table keeps statistics. Text is truncated to 32 characters, and times to milliseconds.
Values that a footer lacks are left out, and readers treat them as unknown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import types as t

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.delta.values import has_statistics
from dbt_zorder.tables.lakehouse.footer_bounds import float_values, is_bounded, leaf_numbers, statistics_of
from dbt_zorder.tables.lakehouse.written_file import WrittenFile

_TEXT = 32
"""Delta truncates text bounds to so many characters."""
_LAST = "\U0010ffff"
"""The suffix of a truncated upper bound, greater than any removed text."""
_NAN = '"NaN"'
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)

Tree = dict[str, Any]
"""JSON texts by column name; a struct's fields are a nested tree."""


def add_action(file: WrittenFile, path: str, parts: Sequence[str], columns: Sequence[ResolvedColumn]) -> str:
    """Return the ``add`` action of a file as JSON.

    Args:
        file: the file.
        path: its path relative to the table's folder, as the log spells it.
        parts: the names of the partition columns.
        columns: the leaves for which the table keeps statistics.
    """
    add = {
        "path": path,
        "partitionValues": dict(zip(parts, file.partition, strict=True)),
        "size": file.size,
        "modificationTime": int(os.stat(file.place).st_mtime * 1000),
        "dataChange": True,
        "stats": statistics(file.place, file.footer, columns),
    }
    return json.dumps({"add": add})


def statistics(file: str, footer: pq.FileMetaData, columns: Sequence[ResolvedColumn]) -> str:
    """Return the statistics of a file as JSON.

    Args:
        file: its path on this machine.
        footer: its footer.
        columns: the leaves with statistics.
    """
    places = leaf_numbers(footer)
    least, most, nulls = Tree(), Tree(), Tree()
    for column in columns:
        here = places.get(column.name, [])
        if len(here) != 1:
            continue
        chunks = statistics_of(footer, here)
        low = high = None
        if is_bounded(chunks):
            counted = sum(one.null_count for one in chunks if one is not None)
            bounded = [one for one in chunks if one is not None and one.has_min_max]
            if bounded and has_statistics(column.data_type):
                low = _text(min(map(_least, bounded)), column, most=False)
                high = _text(max(map(_most, bounded)), column, most=True)
        elif isinstance(column.data_type, (t.FloatType, t.DoubleType)):
            found = float_values(file, column.name)
            counted = found.nulls
            if found.least is not None and found.most is not None:
                low = _text(found.least.as_py(), column, most=False)
                # Spark sorts NaN above all numbers
                high = _NAN if found.nans else _text(found.most.as_py(), column, most=True)
        else:
            continue
        _put(nulls, column.path, str(counted))
        if low is not None and high is not None:
            _put(least, column.path, low)
            _put(most, column.path, high)
    return _json({"numRecords": str(footer.num_rows), "minValues": least, "maxValues": most, "nullCount": nulls})


def _least(chunk: pq.Statistics) -> Any:
    return _value(chunk.min_raw, chunk)


def _most(chunk: pq.Statistics) -> Any:
    return _value(chunk.max_raw, chunk)


def _value(raw: Any, chunk: pq.Statistics) -> Any:
    # decimals of more than 18 digits are stored as bytes
    return int.from_bytes(raw, "big", signed=True) if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY" else raw


def _text(value: Any, column: ResolvedColumn, *, most: bool) -> str | None:
    """Return a bound as JSON; None if JSON cannot represent it."""
    kind = column.data_type
    try:
        if isinstance(kind, t.StringType):
            text = value.decode()
            if text[_TEXT : _TEXT + 1] == _LAST:
                return None
            return json.dumps(text[:_TEXT] + (_LAST if most and len(text) > _TEXT else ""))
        if isinstance(kind, t.DecimalType):
            return format(Decimal(f"{value}E{-kind.scale}"), "f")  # no decimal context rounds it
        if isinstance(kind, t.DateType):
            return json.dumps((_EPOCH_DAY + timedelta(days=value)).isoformat())
        if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
            zone = "Z" if isinstance(kind, t.TimestampType) else ""
            moment = _EPOCH + timedelta(milliseconds=value // 1000)
            return json.dumps(moment.isoformat(timespec="milliseconds") + zone)
    except (OverflowError, UnicodeDecodeError):  # before the year 1, after 9999, or not UTF-8
        return None
    if isinstance(value, float):
        # Arrow keeps the sign of a zero, and Delta may answer min() from a bound
        return repr(value + 0.0) if abs(value) < float("inf") else None
    return str(value)


def _put(tree: Tree, path: Sequence[str], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _json(tree: Tree) -> str:
    """Return a tree as JSON; decimals stay exact only as text."""
    found = (f"{json.dumps(name)}:{_json(one) if isinstance(one, dict) else one}" for name, one in tree.items())
    return f"{{{','.join(found)}}}"
