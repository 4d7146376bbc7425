from __future__ import annotations

import pytest
from pyspark.sql import types as t

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.endpoint.type_text import parse_type

PAIR = t.StructType([t.StructField("min_value", t.LongType()), t.StructField("max_value", t.LongType())])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bigint", t.LongType()),
        ("tinyint", t.ByteType()),
        ("decimal(12,2)", t.DecimalType(12, 2)),
        ("timestamp_ntz", t.TimestampNTZType()),
        ("interval day to second", t.DayTimeIntervalType()),
        ("array<array<string>>", t.ArrayType(t.ArrayType(t.StringType()))),
        ("map<string,decimal(3,1)>", t.MapType(t.StringType(), t.DecimalType(3, 1))),
        ("struct<a:int,b:date>", t.StructType().add("a", t.IntegerType()).add("b", t.DateType())),
        ("struct<s.i:struct<min_value:bigint,max_value:bigint>>", t.StructType().add("s.i", PAIR)),
        ("struct<`a:b`:int,`c``,`:int>", t.StructType().add("a:b", t.IntegerType()).add("c`,", t.IntegerType())),
        ("struct<>", t.StructType()),
    ],
)
def test_a_text_is_read_as_the_type_that_spark_wrote(text: str, kind: t.DataType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize("text", ["nonsense", "struct<a>", "struct<a:int,... 3 more fields>", ""])
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(ZorderError):
        parse_type(text)
