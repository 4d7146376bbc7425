"""What a Delta table is told of the files that it gets: an ``add`` action each, with its statistics.

As Delta's own writer keeps them ("Per-file Statistics" of the Delta protocol): of the columns that the table keeps any
of, least and greatest value, text shortened to 32 characters and times to milliseconds, and the count of NULL. What a
footer does not tell is left out: readers take that for unknown.
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
from dbt_zorder.tables.lakehouse.footer_bounds import float_values, is_bounded, leaf_places, statistics_of
from dbt_zorder.tables.lakehouse.written_file import WrittenFile

_TEXT = 32
"""Characters of a text that are kept."""
_LAST = "\U0010ffff"
"""Behind a text that was shortened: greater than whatever stood there."""
_NAN = '"NaN"'
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)

Tree = dict[str, Any]
"""Texts of JSON by the names of columns, those of a struct's in another one."""


def add_action(file: WrittenFile, path: str, parts: Sequence[str], columns: Sequence[ResolvedColumn]) -> str:
    """Return the action of a file as JSON.

    Args:
        file: of the table.
        path: of it in the table's folder, as the log has it.
        parts: names of the columns that part the table.
        columns: leaves that the table keeps statistics of.
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
        file: on this machine.
        footer: of it.
        columns: leaves to tell of.
    """
    places = leaf_places(footer)
    least, most, nulls = Tree(), Tree(), Tree()
    for column in columns:
        here = places.get(column.name, [])
        if len(here) != 1:
            continue
        told = statistics_of(footer, here)
        low = high = None
        if is_bounded(told):
            counted = sum(one.null_count for one in told if one is not None)
            bounded = [one for one in told if one is not None and one.has_min_max]
            if bounded and has_statistics(column.data_type):
                low = _text(min(map(_least, bounded)), column, most=False)
                high = _text(max(map(_most, bounded)), column, most=True)
        elif isinstance(column.data_type, (t.FloatType, t.DoubleType)):
            found = float_values(file, column.name)
            counted = found.nulls
            if found.least is not None and found.most is not None:
                low = _text(found.least.as_py(), column, most=False)
                # to Spark it is above all numbers
                high = _NAN if found.nans else _text(found.most.as_py(), column, most=True)
        else:
            continue
        _put(nulls, column.path, str(counted))
        if low is not None and high is not None:
            _put(least, column.path, low)
            _put(most, column.path, high)
    return _json({"numRecords": str(footer.num_rows), "minValues": least, "maxValues": most, "nullCount": nulls})


def _least(told: pq.Statistics) -> Any:
    return _value(told.min_raw, told)


def _most(told: pq.Statistics) -> Any:
    return _value(told.max_raw, told)


def _value(raw: Any, told: pq.Statistics) -> Any:
    # decimals of more than 18 digits are stored by their bytes
    return int.from_bytes(raw, "big", signed=True) if told.physical_type == "FIXED_LEN_BYTE_ARRAY" else raw


def _text(value: Any, column: ResolvedColumn, *, most: bool) -> str | None:
    """Return a bound as JSON, None if it has no place there."""
    kind = column.data_type
    try:
        if isinstance(kind, t.StringType):
            text = value.decode()
            if text[_TEXT : _TEXT + 1] == _LAST:
                return None
            return json.dumps(text[:_TEXT] + (_LAST if most and len(text) > _TEXT else ""))
        if isinstance(kind, t.DecimalType):
            return format(Decimal(f"{value}E{-kind.scale}"), "f")  # which no context rounds
        if isinstance(kind, t.DateType):
            return json.dumps((_EPOCH_DAY + timedelta(days=value)).isoformat())
        if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
            zone = "Z" if isinstance(kind, t.TimestampType) else ""
            moment = _EPOCH + timedelta(milliseconds=value // 1000)
            return json.dumps(moment.isoformat(timespec="milliseconds") + zone)
    except (OverflowError, UnicodeDecodeError):  # before the year 1 or behind 9999; no UTF-8
        return None
    if isinstance(value, float):
        # Arrow has zeros with a sign, and Delta may answer by a bound what is least
        return repr(value + 0.0) if abs(value) < float("inf") else None
    return str(value)


def _put(tree: Tree, path: Sequence[str], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _json(tree: Tree) -> str:
    """Return a tree as JSON; a decimal is exact only as the text that it is."""
    found = (f"{json.dumps(name)}:{_json(one) if isinstance(one, dict) else one}" for name, one in tree.items())
    return f"{{{','.join(found)}}}"
