from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import (
    TableName,
    column_facts,
    describe,
    properties,
    schema_location,
    served_locations,
    table_locations,
)


def test_what_is_not_there_is_none(spark: SparkSession, database: str) -> None:
    assert describe(spark, TableName(database, "nothing")) is None
    assert describe(spark, TableName("no_such_schema", "nothing")) is None


def test_a_managed_table_is_described(spark: SparkSession, database: str) -> None:
    table = TableName(database, "managed")
    spark.sql(
        f"CREATE TABLE {table.sql} (a INT COMMENT 'first', `b c` STRUCT<x: STRING>, p STRING) USING parquet "
        "PARTITIONED BY (p) COMMENT 'two\nlines' TBLPROPERTIES ('k.x' = 'v')"
    )
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, info.provider, info.comment) == ("MANAGED", "parquet", "two\nlines")
    assert list(info.partition_columns) == ["p"]
    assert list(info.columns) == [("a", "int", "first"), ("b c", "struct<x:string>", ""), ("p", "string", "")]
    assert info.location.endswith("/managed")
    assert properties(spark, table)["k.x"] == "v"


def test_a_view_has_no_location(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE VIEW {database}.seen AS SELECT 1 AS one")
    info = describe(spark, TableName(database, "seen"))
    assert info is not None
    assert (info.kind, info.location, list(info.columns)) == ("VIEW", "", [("one", "int", "")])


def test_column_facts_have_the_form_of_a_description(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.facts (a DECIMAL(9, 2), b ARRAY<INT> COMMENT 'list') USING parquet")
    info = describe(spark, TableName(database, "facts"))
    assert info is not None
    assert column_facts(spark.table(f"{database}.facts").schema) == list(info.columns)


def test_names_are_quoted_and_readable() -> None:
    name = TableName("my db", "t`1")
    assert (name.sql, str(name)) == ("`my db`.`t``1`", "my db.t`1")


def test_a_schema_says_where_it_lies(spark: SparkSession, database: str) -> None:
    assert schema_location(spark, database).endswith(f"/{database}.db")
    with pytest.raises(ZorderError, match="There is no schema no_such_schema"):
        schema_location(spark, "no_such_schema")


def test_a_comment_does_not_hide_where_a_table_lies(spark: SparkSession, database: str) -> None:
    spark.sql(
        f"CREATE TABLE {database}.commented (a INT) USING parquet COMMENT 'moved\nLocation: /elsewhere/there\nback'"
    )
    assert served_locations(spark)["commented"] == f"{database}.commented"


def test_a_table_of_another_tool_hides_no_other_one_by_its_name() -> None:
    def answer(statement: str) -> Any:
        found: Any = {"tableName": "a/b", "information": "Location: file:/w/ab\n", "isTemporary": False}
        return SimpleNamespace(collect=lambda: [("db",) if statement == "SHOW DATABASES" else found])

    spark: Any = SimpleNamespace(sql=answer)
    assert [(str(table), place) for table, place in table_locations(spark)] == [("db.a/b", "file:/w/ab")]
    assert served_locations(spark) == {"ab": "db.a/b"}
