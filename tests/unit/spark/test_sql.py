from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType, TimestampType

from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import glob_escape, quote_name, quote_string

TEXTS = [
    "",
    "plain",
    "it's",
    '"double"',
    "back\\slash",
    "\\",
    "\\'",
    "'; DROP TABLE t; --",
    "' OR '1'='1",
    "${spark.app.name}",
    "{{ jinja }}",
    "%s %d %%",
    "\\u0041 \\n \\x",
    "tab\tnewline\nreturn\rnull\x00del\x7f",
    "ünïcödé 漢字 🎈",
    "/* comment */ -- line",
    "$$ :name ? `tick`",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_string_literal_comes_back_from_spark_as_it_was(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {quote_string(text)}").collect()[0][0] == text


# Spark replaces ${...} anywhere in a statement, and inside backticks nothing can hide it
@pytest.mark.parametrize("name", [text for text in TEXTS if text and "\x00" not in text and "${" not in text])
def test_a_quoted_name_is_one_name_to_spark(spark: SparkSession, name: str) -> None:
    assert spark.sql(f"SELECT 1 AS {quote_name(name)}").columns == [name]


def test_parts_are_quoted_one_by_one() -> None:
    assert quote_name("a b", "c`d", "e.f") == "`a b`.`c``d`.`e.f`"


def parsed(ddl: str) -> DataType:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema[0].dataType


@pytest.mark.parametrize(
    "ddl",
    [
        "v int",
        "v decimal(38, 18)",
        "v array<struct<`a b`: int, `c``d`: array<string>>>",
        "v map<string, struct<`x.y`: map<int, date>>>",
        "v struct<`select`: struct<`füß,<>:`: bigint>>",
        "v interval day to second",
        "v interval year",
        "v string collate UTF8_LCASE",
        "v timestamp_ntz",
        "v struct<>",
    ],
)
def test_ddl_of_a_type_means_the_type(ddl: str) -> None:
    assert parsed(f"v {type_ddl(parsed(ddl))}") == parsed(ddl)


def test_a_timestamp_is_one_also_where_the_word_means_another_type(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        made = spark.sql(f"SELECT CAST(NULL AS {type_ddl(ArrayType(TimestampType()))}) AS v")
    finally:
        spark.conf.unset("spark.sql.timestampType")
    assert made.schema["v"].dataType == ArrayType(TimestampType())


@pytest.mark.parametrize("name", ["plain", "a*b", "a?b", "a[b]c", "a{b,c}d", "a^b", "sp ace", "per%20cent", "ünï"])
def test_an_escaped_path_is_read_for_itself(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = str(tmp_path / name)
    spark.range(3).write.parquet(folder)
    spark.range(5).write.parquet(str(tmp_path / "ab"))  # what a glob might take instead
    assert spark.read.parquet(glob_escape(folder)).count() == 3
