"""Spark's word on a predicate, and what is known without it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from dbt_zorder.pruning.predicate import confirm as agree
from dbt_zorder.pruning.predicate.confirm import filter_rows, is_confirmed, read_types
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import Node, to_sql
from tests.support import settings
from tests.unit.pruning.test_scan import PRUNED


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


def tree_of(frame: DataFrame, predicate: str) -> Node:
    parsed = parse(predicate)
    assert parsed is not None
    return read(parsed, Names(frame.schema, qualifiers=(("t",),)))


@pytest.mark.parametrize(
    "predicate", [predicate for predicate, _ in PRUNED if "rand" not in predicate and parse(predicate) is not None]
)
def test_trees_agree_by_their_text_only_if_they_do_by_their_meaning(
    spark: SparkSession, table: str, predicate: str
) -> None:
    frame = spark.table(table)
    tree = tree_of(frame, predicate)
    accepted = filter_rows(frame, predicate)
    assert is_confirmed(frame, accepted, tree)
    assert is_confirmed(frame, accepted, tree, predicate)
    other = tree_of(frame, "a = 77")
    assert not is_confirmed(frame, accepted, other)
    assert not is_confirmed(frame, accepted, other, predicate)


@pytest.mark.parametrize(
    ("predicate", "by_text"),
    [
        ("a = 5", True),
        ("a = 5 AND b < 7 AND st.f = 3", True),
        ("a IN (1, 2) OR s LIKE 'k%'", True),
        ("ts >= '2023-12-01'", True),
        ("A = 5", False),
        ("t.a = 5", False),
    ],
)
def test_names_as_the_schema_writes_them_take_no_analysis(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, predicate: str, by_text: bool
) -> None:
    frame = spark.table(table)
    tree = tree_of(frame, predicate)
    accepted = filter_rows(frame, predicate)
    assert agree._parse_alike(frame, predicate, to_sql(tree)) is by_text
    assert is_confirmed(frame, accepted, tree, predicate)


def test_another_grammar_is_another_text(spark: SparkSession, table: str) -> None:
    frame = spark.table(table)
    for one, other in [
        ("a = 5", "a = 6"),
        ("a = 5", "a = 5L"),
        ("a = 5", "b = 5"),
        ("NOT a = 5 AND b = 1", "NOT (a = 5 AND b = 1)"),
        ("s = 'a'", "s = 'A'"),
        ("s LIKE 'a!%' ESCAPE '!'", "s LIKE 'a!%'"),
        ("upper(s) = 'A'", "lower(s) = 'A'"),
        ("CAST(a AS INT) = 1", "CAST(a AS BIGINT) = 1"),
        ("TRY_CAST(s AS INT) = 1", "CAST(s AS INT) = 1"),
        ("d = DATE '2024-01-01'", "d = '2024-01-01'"),
    ]:
        assert agree._parse_alike(frame, one, one)
        assert not agree._parse_alike(frame, one, other), (one, other)


LITERALS = [
    "0", "7", "999999999", "2147483647", "2147483648", "9999999999", "12345678901", "999999999999999999",
    "9223372036854775807", "9223372036854775808", "007", "1.5", "1e3", "1L", "1S", "1BD", "2D", "TRUE", "FALSE", "NULL",
    "DATE '2024-01-01'", "date'2024-1-1'", "TIMESTAMP '2024-01-01'", "TIMESTAMP_NTZ '2024-01-01'", "'text'", "X'1F'",
    "- 5", "- 999999999", "- 2147483648", "- 12345678901",
    "0000000000005", "- 0000000000005",
]  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("timestamps", ["TIMESTAMP_NTZ", "TIMESTAMP_LTZ"])
def test_types_that_are_known_are_sparks(spark: SparkSession, table: str, ansi: str, timestamps: str) -> None:
    frame = spark.table(table)
    with settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.timestampType": timestamps}):
        for literal in LITERALS:
            tree = tree_of(frame, f"a = {literal}")
            for sql, kind in read_types(spark, tree).items():
                assert kind == agree._types(spark, [sql])[0], sql


def test_of_plain_literals_spark_is_not_asked(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = agree._types

    def counted(spark: SparkSession, sql: Iterable[str]) -> list[DataType]:
        asked.extend(sql)
        return real(spark, asked)

    monkeypatch.setattr(agree, "_types", counted)
    frame = spark.table(table)
    read_types(spark, tree_of(frame, "a = 5 AND b BETWEEN 1 AND 12345678901 AND d < DATE '2024-01-01' AND x > -3"))
    assert asked == []
    read_types(spark, tree_of(frame, "a = 5 AND s = 'x'"))
    assert asked == ["'x'"]
