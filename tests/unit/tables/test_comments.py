from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.comments import documented, set_comments
from dbt_zorder.tables.parquet.build import build
from tests.support import unique

ODD = 'it\'s "quoted",\n-- with ${spark.app.name} and \\n'


@pytest.mark.parametrize("zordered", [False, True])
def test_comments_are_set_once(spark: SparkSession, database: str, *, zordered: bool) -> None:
    table = TableName(database, unique("commented"))
    if zordered:
        build(spark, spark.sql("select id, id as `A b` from range(9)"), BuildRequest(table, LayoutSpec(by=("id",))))
    else:
        spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT id, id AS `A b` FROM range(9)")
    assert set_comments(spark, table, ODD, {"A b": ODD}) == 2
    info = describe(spark, table)
    assert info is not None
    assert info.comment == ODD
    assert info.columns == [("id", "bigint", ""), ("A b", "bigint", ODD)]
    assert spark.table(table.sql).count() == 9
    assert set_comments(spark, table, None, {"A b": ODD, "gone": "x"}) == 0


def test_a_view_is_left_alone(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("view"))
    spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS a")
    assert set_comments(spark, table, "x", {"a": "y"}) == 0


def test_a_property_in_quotes_names_a_column_in_its_very_case() -> None:
    columns: dict[str, dict[str, object]] = {
        "A": {"description": "a"},
        "B": {"description": "b", "quote": True},
        "c": {"description": None},
    }
    assert documented(columns, ["a", "b", "C"]) == {"a": "a", "C": ""}
    assert documented(columns, ["B"]) == {"B": "b"}
    assert documented(columns, ["a", "A", "C"], sensitive=True) == {"A": "a"}


def test_partition_columns_keep_the_comments_that_they_were_made_with(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("parted"))
    spark.sql(f"CREATE TABLE {table.sql} (id bigint, p int COMMENT 'first') USING parquet PARTITIONED BY (p)")
    assert set_comments(spark, table, None, {"p": "second", "id": "the id"}) == 1
    info = describe(spark, table)
    assert info is not None
    assert info.columns == [("id", "bigint", "the id"), ("p", "int", "first")]
