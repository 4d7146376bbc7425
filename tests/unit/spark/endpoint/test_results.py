from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from dbt_zorder.spark.endpoint.results import fetch, statement_table
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError


def test_values_come_back_as_they_were_whatever_the_protocol_makes_of_their_types() -> None:
    inner = t.StructType([t.StructField("x", t.DoubleType()), t.StructField("y", t.DateType())])
    schema = t.StructType(
        [
            t.StructField("n", t.TimestampNTZType()),
            t.StructField("dec", t.DecimalType(12, 2)),
            t.StructField("s", inner),
            t.StructField("raw", t.BinaryType()),
            t.StructField("at", t.TimestampType()),
            t.StructField("list", t.ArrayType(t.LongType())),
        ]
    )
    rows: list[tuple[Any, ...]] = [
        ("2024-01-05 01:02:03.000004", "1.50", False, 2.5, 19000, "AP8=", 1_000_001, "[1,null]"),
        ("+12000-01-01 00:00:00", None, True, None, None, None, None, None),
    ]
    asked: list[str] = []

    def rows_of(statement: str) -> Sequence[Sequence[Any]]:
        asked.append(statement)
        return rows

    found = fetch(rows_of, "SELECT * FROM t", schema)
    assert "c2 IS NULL, c2.`x`, unix_date(c2.`y`), base64(c3), unix_micros(c4)" in asked[0]
    assert found["n"].cast(pa.int64()).to_pylist()[0] == 1_704_416_523_000_004
    assert found["n"].cast(pa.int64()).to_pylist()[1] == 316_516_204_800_000_000
    assert found["dec"].to_pylist() == [Decimal("1.50"), None]
    assert found["s"].to_pylist() == [{"x": 2.5, "y": dt.date(2022, 1, 8)}, None]
    assert found["raw"].to_pylist() == [b"\x00\xff", None]
    assert found["at"].cast(pa.int64()).to_pylist() == [1_000_001, None]
    assert found["list"].to_pylist() == [[1, None], None]


def test_no_rows_keep_their_types_and_names_may_repeat() -> None:
    schema = t.StructType([t.StructField("a", t.IntegerType()), t.StructField("a", t.StringType())])
    found = fetch(lambda _: [], "SELECT 1", schema)
    assert (found.num_rows, found.schema.names) == (0, ["a", "a"])
    assert found.schema.types == [pa.int32(), pa.string()]


def test_a_map_cannot_be_fetched() -> None:
    schema = t.StructType([t.StructField("m", t.MapType(t.StringType(), t.StringType()))])
    with pytest.raises(UnsupportedError, match="map<string,string>"):
        fetch(lambda _: [], "SELECT 1", schema)


def test_the_rows_of_a_statement_are_typed_by_their_values() -> None:
    table = statement_table([("a", True, None), ("b", False, None)], [("name",), ("flag",), ("comment",)])
    assert table.schema.types == [pa.string(), pa.bool_(), pa.string()]
