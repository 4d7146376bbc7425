from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.clients import agate_helper
from pyspark.sql import SparkSession

from dbt_zorder.adapter.models.seeds import arrow_column, seed_frame
from tests.support import settings

UTC = dt.timezone.utc
BIG = 2**63


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, Decimal(2), None], "bigint", pa.array([1, 2, None], pa.int64())),
        ([Decimal("1.5"), None], "double", pa.array([1.5, None])),
        ([True, None], "boolean", pa.array([True, None])),
        ([BIG], "bigint", pa.array([str(BIG)])),
        (["7", None], "int", pa.array(["7", None])),
        (["7"], "BIGINT", pa.array(["7"])),
        ([None], "decimal(3,1)", pa.array([None], pa.string())),
        ([dt.datetime(2020, 1, 2)], "timestamp", pa.array([dt.datetime(2020, 1, 2)], pa.timestamp("us"))),
        ([dt.datetime(2020, 1, 2, tzinfo=UTC), dt.datetime(2020, 1, 2)], "timestamp",
         pa.array(["2020-01-02 00:00:00+00:00", "2020-01-02 00:00:00"])),
        (["2020-01-02"], "timestamp", pa.array(["2020-01-02"])),
    ],
)  # fmt: skip
def test_values_are_of_their_type_or_text_for_spark_to_cast(values: list[Any], kind: str, expected: pa.Array) -> None:
    found = arrow_column(values, kind)
    assert found.type == expected.type
    assert found.equals(expected)


def test_names_need_not_be_tame(spark: SparkSession) -> None:
    table = agate_helper.table_from_rows([(1, "x", "2.5")], ["a b", "`c.d`", "x"], text_only_columns=["x"])
    df, casts = seed_frame(spark, table, ["bigint", "string", "decimal(2,1)"])
    assert df.columns == ["a b", "`c.d`", "x"]
    assert casts
    assert df.collect() == [(1, "x", Decimal("2.5"))]
    assert not seed_frame(spark, table, ["bigint", "string", "string"])[1]


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [("12", "decimal(3,1)", True), ("123", "decimal(3,1)", False), ("cheap", "int", False), (str(BIG), "bigint", False),
     ("abc", "varchar(3)", True), ("abcd", "VARCHAR (3)", False), ("abcd", "char(3)", False), ("nay", "date", False)],
)  # fmt: skip
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_fits_or_fails(spark: SparkSession, value: str, kind: str, fits: bool, ansi: str) -> None:
    table = agate_helper.table_from_rows([(value,), (None,)], ["a"], text_only_columns=["a"])
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        df, casts = seed_frame(spark, table, [kind])
        assert casts
        if fits:
            assert df.where("a IS NULL").count() == 1
        else:
            with pytest.raises(Exception, match=f"column a does not fit into .*: {value}"):
                df.collect()
