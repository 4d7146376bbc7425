"""What a Delta log's ``add`` actions say, read without Spark; tests/formats compare all types with Spark's reading."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as t

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.bounds_json import UnreadableValueError
from dbt_zorder.stats.delta.values import delta_values


def one(kind: t.DataType, low: Any = None, high: Any = None, path: tuple[str, ...] = ("c",)) -> Any:
    """Return what is read of one file's column ``c``."""
    sides = {"minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": 1}}
    stats = json.dumps({"numRecords": 3, **sides})
    (file,) = delta_values([{"path": "p.parquet", "size": 9, "stats": stats}], "file:/t", [ResolvedColumn(path, kind)])
    return file.bounds[0]


def test_paths_are_whole() -> None:
    files = delta_values([{"path": "a/b%20c", "size": 1}, {"path": "s3://b/x", "size": 2}], "file:/t", [])
    assert [(file.path, file.size, file.rows) for file in files] == [
        ("file:/t/a/b%20c", 1, None),
        ("s3://b/x", 2, None),
    ]


@pytest.mark.parametrize("stats", [None, "", "{}", '{"numRecords": 3}', '{"minValues": {"d": 1}, "nullCount": null}'])
def test_what_is_not_told_is_not_known(stats: str | None) -> None:
    (file,) = delta_values([{"path": "p", "size": 1, "stats": stats}], "/t", [ResolvedColumn(("c",), t.LongType())])
    assert file.bounds == [(None, None, None)]


def test_values_are_of_their_types() -> None:
    assert one(t.LongType(), -(2**63), 2**63 - 1) == (-(2**63), 2**63 - 1, 1)
    assert one(t.DateType(), "0001-01-01", "9999-12-31") == (date(1, 1, 1), date(9999, 12, 31), 1)
    assert one(t.DecimalType(38, 3), 1, 2.5) == (Decimal(1), Decimal("2.5"), 1)
    assert one(t.DoubleType(), "NaN", 1)[1:] == (1.0, 1)
    assert one(t.BooleanType(), True, True) == (None, None, 1)
    assert one(t.StringType(), "", "é") == ("", "é", 1)


def test_the_greatest_moment_is_that_of_its_millisecond() -> None:
    low, high, _ = one(t.TimestampType(), "2024-01-01T00:00:00.000Z", "2024-01-01T01:00:00.000+01:00")
    assert low == datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert high == datetime(2024, 1, 1, 0, 0, 0, 1000, tzinfo=timezone.utc)
    assert one(t.TimestampNTZType(), "2024-01-01T00:00:00.000")[0] == datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (t.TimestampType(), "2024-01-01T00:00:00.000"),
        (t.TimestampNTZType(), "2024-01-01T00:00:00.000Z"),
        (t.TimestampType(), "9999-12-31T23:59:59.999Z"),  # and its millisecond ends in the year 10000
        (t.DateType(), "+10000-01-01"),
        (t.DateType(), 7),
        (t.DecimalType(9, 2), "much"),
        (t.DoubleType(), "much"),
        (t.BinaryType(), "AA=="),
        (t.ArrayType(t.LongType()), None),
    ],
)
def test_what_is_of_no_known_type_is_for_spark(kind: t.DataType, value: Any) -> None:
    with pytest.raises(UnreadableValueError):
        one(kind, value, value)


def test_a_struct_that_is_none_is_for_spark() -> None:
    with pytest.raises(UnreadableValueError):
        one(t.LongType(), 1, 2, path=("c", "x"))
