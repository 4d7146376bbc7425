"""Bounds of a format in the shape of our own stats."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as t

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.bounds_json import FileValues, UnreadableValueError, arrow_type, local_stats

SESSION: Any = None
"""Rows in memory need none."""


def test_files_are_rows_of_stats() -> None:
    columns = [ResolvedColumn(("s", "x"), t.DateType()), ResolvedColumn(("d",), t.DecimalType(38, 2))]
    day, amount = date(2024, 2, 29), Decimal("-7.25")
    files = [
        FileValues("/a", 10, 3, [(day, day, 0), (amount, None, 1)]),
        FileValues("/b", 11, None, [(None, None, None)] * 2),
    ]
    found = local_stats(SESSION, files, columns, "7")
    assert found.rows.schema.names == found.schema.names
    assert found.rows.to_pylist() == [
        {
            "file_path": "/a",
            "file_size": 10,
            "row_count": 3,
            "version": "7",
            "columns": {
                "s.x": {"min_value": day, "max_value": day, "null_count": 0},
                "d": {"min_value": amount, "max_value": None, "null_count": 1},
            },
        },
        {
            "file_path": "/b",
            "file_size": 11,
            "row_count": None,
            "version": "7",
            "columns": {name: dict.fromkeys(("min_value", "max_value", "null_count")) for name in ("s.x", "d")},
        },
    ]


@pytest.mark.parametrize("files", [[], [FileValues("/a", 10, 3, [])]])
def test_without_columns_files_are_known_by_their_sizes(files: list[FileValues]) -> None:
    found = local_stats(SESSION, files, [], "")
    assert found.rows["file_size"].to_pylist() == [file.size for file in files]


def test_a_value_that_its_type_cannot_hold_is_an_error() -> None:
    column = ResolvedColumn(("c",), t.ByteType())
    with pytest.raises(UnreadableValueError):
        local_stats(SESSION, [FileValues("/a", 1, 1, [(1, 300, 0)])], [column], "")


@pytest.mark.parametrize("kind", [t.BinaryType(), t.DayTimeIntervalType(), t.StructType(), t.VariantType()])
def test_other_types_are_for_spark(kind: t.DataType) -> None:
    assert arrow_type(kind) is None
