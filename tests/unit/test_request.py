from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.partitions import NULL_PARTITION
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest, check, readable_partitions
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.swap import definition_for
from tests.support import settings


def request(by: tuple[str, ...], partition_by: tuple[str, ...] = (), **more: Any) -> BuildRequest:
    return BuildRequest(TableName("default", "t"), LayoutSpec(by=by, files=4, partition_by=partition_by), **more)


@pytest.mark.parametrize(
    ("query", "more", "error", "message"),
    [
        ("SELECT 1 AS a, 2 AS A", {"by": ("a",)}, ColumnError, "produces the column 'A' twice"),
        ("SELECT 1 AS a", {"by": ("b",)}, ColumnError, "no column 'b'"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "stats_columns": ("x",)}, ColumnError, "no column 'x'"),
        ("SELECT 1 AS a, map(1, 2) AS s", {"by": ("a",), "stats_columns": ("s",)}, ColumnError, "cannot order"),
        ("SELECT 1 AS a, map(1, 2) AS s", {"by": ("s",)}, ColumnError, "cannot order"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "partition_by": ("q",)}, ColumnError, "no column 'q'"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "partition_by": ("s", "S")}, ColumnError, "named twice"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "partition_by": ("a",)}, ConfigError, "partition column"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "partition_by": ("a", "s")}, ConfigError, "Every column is"),
        ("SELECT 1 AS a, struct(2 AS x) AS s", {"by": ("a",), "partition_by": ("s.x",)}, ConfigError, "a field inside"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("a",), "partition_by": ("q",)}, ColumnError, "partition_by: There is no"),
        ("SELECT 1 AS a, 2 AS s", {"by": ("b",)}, ColumnError, "zorder_by: There is no"),
        ("SELECT 1 AS a, X'04' AS p", {"by": ("a",), "partition_by": ("P",)}, ConfigError, r"Write hex\(`p`\) in"),
        ("SELECT 1 AS a, 2 AS `.p`", {"by": ("a",), "partition_by": ("`.p`",)}, ConfigError, "begin with a dot"),
        ("SELECT 1 AS a", {"by": ("a",), "bloom": ("b",)}, ColumnError, "zorder_bloom: There is no"),
        ("SELECT 1 AS a, 2D AS s", {"by": ("a",), "bloom": ("s",)}, ColumnError, "a double, .* 0.0 from -0.0"),
        ("SELECT 1 AS a, 2F AS s", {"by": ("a",), "bloom": ("s",)}, ColumnError, "is a float"),
        ("SELECT 1 AS a, map(1, 2) AS s", {"by": ("a",), "bloom": ("s",)}, ColumnError, "only a column of single"),
        ("SELECT 1 AS a, 2 AS `s.t`", {"by": ("a",), "bloom": ("`s.t`",)}, ColumnError, "has a dot in its name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_found(
    spark: SparkSession, query: str, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(spark.sql(query), request(**more))


def test_partition_columns_go_last_with_their_comments(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS P, 2 AS a, 3 AS b")
    found = definition_for(df, request(("a",), ("p",), column_comments={"p": "the part", "B": "the b"}, comment="all"))
    assert found.schema.names == ["a", "b", "P"]
    assert [field.metadata.get("comment") for field in found.schema] == [None, "the b", "the part"]
    assert (list(found.partition_by), found.comment) == (["P"], "all")


def test_the_empty_text_and_null_are_one_partition(spark: SparkSession) -> None:
    df = spark.sql("SELECT * FROM VALUES ('x', 1), ('', 2), (NULL, 3) AS t(p, a)")
    rows = readable_partitions(df, request(("a",), ("p",))).collect()
    assert [row.p for row in rows] == ["x", NULL_PARTITION, NULL_PARTITION]


def test_a_moment_whose_folder_is_that_of_another_is_no_partition(spark: SparkSession) -> None:
    summer, winter = (f"TIMESTAMP '2024-11-03 01:30:00 {offset}'" for offset in ("-04:00", "-05:00"))
    query = "SELECT * FROM VALUES ({}, 1), (NULL, 2), (TIMESTAMP '2024-03-10 02:30:00', 3) AS t(p, a)"
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        df = spark.sql(query.format(summer))
        assert readable_partitions(df, request(("a",), ("p",))).collect() == df.collect()
        with pytest.raises(Exception, match="partition column p holds a moment that clocks show twice"):
            readable_partitions(spark.sql(query.format(winter)), request(("a",), ("p",))).collect()


def test_a_bloom_filter_wins_over_an_option_of_the_same_name(spark: SparkSession, table: TableName) -> None:
    df = spark.range(500).selectExpr("id", "pmod(hash(id), 100) AS a", "concat('k', id % 10) AS s")
    options = {"parquet.bloom.filter.enabled#id": "false"}
    build(spark, df, BuildRequest(table, LayoutSpec(by=["a", "s"], files=1), bloom=["id"], options=options))
    (name,) = spark.table(table.sql).inputFiles()
    group = pq.read_metadata(name.removeprefix("file:")).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    assert [chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_length] == ["id"]


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [({}, 8 << 10, 64 << 10), ({"parquet.bloom.filter.expected.ndv#id": "400000"}, 256 << 10, 1 << 20)],
)
def test_a_bloom_filter_is_as_large_as_the_rows_of_a_file_ask_for(
    spark: SparkSession, table: TableName, options: dict[str, str], least: int, most: int
) -> None:
    """By itself Parquet makes each of a megabyte."""
    df = spark.range(40_000).selectExpr("id", "pmod(hash(id), 1000) AS a")
    build(spark, df, BuildRequest(table, LayoutSpec(by=["a", "id"], files=4), bloom=["id"], options=options))
    for name in spark.table(table.sql).inputFiles():
        column = pq.read_metadata(name.removeprefix("file:")).row_group(0).column(0)
        assert least <= column.bloom_filter_length <= most
    assert spark.table(table.sql).where("id = 33333").count() == 1
