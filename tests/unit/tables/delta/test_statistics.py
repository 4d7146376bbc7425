"""The statistics that a Delta log has of a file."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.tables.delta.statistics import statistics

NAN = float("nan")


def statistics_of(
    path: Path, values: list[Any], kind: pa.DataType, spark: t.DataType, group: int = 2
) -> tuple[Any, Any, Any]:
    """Return the bounds and the count of NULL of one column, None where there are none."""
    file = path / "f.parquet"
    rows = pa.table({"c": pa.array(values, kind)})
    pq.write_table(rows, file, row_group_size=group, store_decimal_as_integer=True)
    found = json.loads(
        statistics(str(file), pq.read_metadata(file), [ResolvedColumn(("c",), spark)]), parse_float=Decimal
    )
    assert found["numRecords"] == len(values)
    return (*(found[side].get("c") for side in ("minValues", "maxValues")), found["nullCount"].get("c"))


MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)
LONG = "é" * 40


@pytest.mark.parametrize(
    ("values", "kind", "spark", "expected"),
    [
        ([3, None, -7], pa.int64(), t.LongType(), (-7, 3, 1)),
        ([None, None, None], pa.int32(), t.IntegerType(), (None, None, 3)),
        ([True, False, None], pa.bool_(), t.BooleanType(), (None, None, 1)),
        ([b"a", b"b"], pa.binary(), t.BinaryType(), (None, None, 0)),
        (["b", "a", None], pa.string(), t.StringType(), ("a", "b", 1)),
        ([LONG, LONG], pa.string(), t.StringType(), (LONG[:32], LONG[:32] + "\U0010ffff", 0)),
        (["a", "x" * 5000, "b"], pa.string(), t.StringType(), (None, None, None)),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32(), t.DateType(), ("0001-01-01", "9999-12-31", 0)),
        (
            [MOMENT.replace(tzinfo=timezone.utc)] * 2,
            pa.timestamp("us", "UTC"),
            t.TimestampType(),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z", 0),
        ),
        (
            [MOMENT] * 2,
            pa.timestamp("us"),
            t.TimestampNTZType(),
            ("1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999", 0),
        ),
        (
            [Decimal("-0.05"), Decimal("7.10")],
            pa.decimal128(7, 2),
            t.DecimalType(7, 2),
            (Decimal("-0.05"), Decimal("7.10"), 0),
        ),
        (
            [Decimal("-12345678901234567890.12"), Decimal("0.01")],
            pa.decimal128(30, 2),
            t.DecimalType(30, 2),
            (Decimal("-12345678901234567890.12"), Decimal("0.01"), 0),
        ),
        *(
            (
                [Decimal(f"-{'9' * 38}E{-scale}"), Decimal(f"{'9' * 38}E{-scale}")],
                pa.decimal128(38, scale),
                t.DecimalType(38, scale),
                (Decimal(f"-{'9' * 38}E{-scale}"), Decimal(f"{'9' * 38}E{-scale}"), 0),
            )
            for scale in (0, 6, 38)
        ),
        ([f"{'a' * 32}\U0010ffffb"], pa.string(), t.StringType(), (None, None, 0)),
        ([0.0, 0.0], pa.float64(), t.DoubleType(), (Decimal("0.0"), Decimal("0.0"), 0)),
        ([1.5, -2.25], pa.float64(), t.DoubleType(), (Decimal("-2.25"), Decimal("1.5"), 0)),
        ([float("inf"), 1.0], pa.float64(), t.DoubleType(), (None, None, 0)),
    ],
)
def test_bounds_are_as_delta_keeps_them(
    tmp_path: Path, values: list[Any], kind: pa.DataType, spark: t.DataType, expected: tuple[Any, Any, Any]
) -> None:
    assert statistics_of(tmp_path, values, kind, spark) == expected


def test_dates_beyond_the_years_that_json_has_are_left_out(tmp_path: Path) -> None:
    assert statistics_of(tmp_path, [-800_000, 0], pa.int32(), t.DateType()) == (None, None, 0)


def test_nan_is_above_all(tmp_path: Path) -> None:
    """Arrow itself has bounds beside NaN, so that statistics are left out, as our writer does."""
    file = tmp_path / "f.parquet"
    rows = pa.table({"c": [1.0, NAN, None], "st": [{"f": NAN}, {"f": NAN}, {"f": NAN}]})
    pq.write_table(rows, file, write_statistics=False)
    columns = [ResolvedColumn(("c",), t.DoubleType()), ResolvedColumn(("st", "f"), t.DoubleType())]
    found = json.loads(statistics(str(file), pq.read_metadata(file), columns))
    assert found["minValues"] == {"c": 1.0}
    assert found["maxValues"] == {"c": "NaN"}
    assert found["nullCount"] == {"c": 1, "st": {"f": 0}}
