"""Read the metrics of an Iceberg snapshot's files with Iceberg's library.

A bound is a byte string (Iceberg's specification, Appendix D: single-value serialization).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyspark.sql import types as t

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.jvm import class_named, items
from dbt_zorder.stats.bounds_json import FileValues, UnreadableValueError, arrow_type

MOST_FILES = 100
"""The most files read here, a millisecond each; a query lasts a tenth of a second for any number."""
_DAY, _MOMENT = date(1970, 1, 1), datetime(1970, 1, 1)


def iceberg_values(jvm: Any, table: Any, snapshot: Any, columns: Sequence[ResolvedColumn]) -> list[FileValues]:
    """Return the files of a snapshot with their metrics.

    Args:
        jvm: the JVM of the session.
        table: the table of Iceberg's library.
        snapshot: a snapshot of the table, from the same library.
        columns: the columns whose bounds are returned.

    Raises:
        UnreadableValueError: Spark must read the metrics.
    """
    if any(arrow_type(column.data_type) is None for column in columns):
        msg = "a type that is not read here"
        raise UnreadableValueError(msg)
    if int(snapshot.summary().get("total-data-files") or MOST_FILES + 1) > MOST_FILES:
        msg = "there are many files"
        raise UnreadableValueError(msg)
    schema = table.schema()
    numbers = [_number(schema, column) for column in columns]
    scan = table.newScan().useSnapshot(snapshot.snapshotId())
    if columns:  # sending every column of a wide table to Python is slow
        names = class_named(jvm, "java.util.ArrayList")()
        for column in columns:
            names.add(column.name)
        scan = scan.includeColumnStats(names)
    tasks = scan.planFiles()
    parser = class_named(jvm, "org.apache.iceberg.ContentFileParser")
    try:
        return [
            _of_file(json.loads(str(parser.toJson(task.file(), task.spec()))), numbers, columns)
            for task in items(tasks)
        ]
    except (ValueError, ArithmeticError, struct.error) as exc:
        raise UnreadableValueError(str(exc)) from exc
    finally:
        tasks.close()


def _number(schema: Any, column: ResolvedColumn) -> int:
    """Return the field id of a column in the files."""
    field = schema.findField(column.name)
    # Spark reads a UUID as text, but its bytes differ
    if field is None or (isinstance(column.data_type, t.StringType) and str(field.type()) != "string"):
        raise UnreadableValueError(column.name)
    return int(field.fieldId())


def _of_file(file: Mapping[str, Any], numbers: Sequence[int], columns: Sequence[ResolvedColumn]) -> FileValues:
    lows, highs, nulls = (_by_number(file, name) for name in ("lower-bounds", "upper-bounds", "null-value-counts"))
    bounds = []
    for number, column in zip(numbers, columns, strict=True):
        low, high = (_value(side.get(number), column.data_type) for side in (lows, highs))
        bounds.append((low, high, nulls.get(number)))
    return FileValues(file["file-path"], file["file-size-in-bytes"], file["record-count"], bounds)


def _by_number(file: Mapping[str, Any], name: str) -> Mapping[int, Any]:
    entries = file.get(name) or {"keys": [], "values": []}
    return dict(zip(entries["keys"], entries["values"], strict=True))


def _value(text: str | None, kind: t.DataType) -> Any:
    if text is None:
        return None
    raw = bytes.fromhex(text)
    if isinstance(kind, t.StringType):
        return raw.decode()
    if isinstance(kind, t.BooleanType):
        return raw != b"\0"
    if isinstance(kind, t.DecimalType):
        # no decimal context rounds it
        return Decimal(f"{int.from_bytes(raw, 'big', signed=True)}E{-kind.scale}")
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        return struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
    whole = int.from_bytes(raw, "little", signed=True)
    if isinstance(kind, t.DateType):
        return _DAY + timedelta(days=whole)
    if isinstance(kind, t.TimestampType):
        return _MOMENT.replace(tzinfo=timezone.utc) + timedelta(microseconds=whole)
    if isinstance(kind, t.TimestampNTZType):
        return _MOMENT + timedelta(microseconds=whole)
    return whole
