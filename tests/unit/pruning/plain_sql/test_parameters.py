from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import query
from dbt_zorder.pruning.plain_sql.parameters import with_literals
from tests.support import unique
from tests.unit.pruning.helpers import files_read

T = "pruning_unit.t"

# a statement, its values, and how many of eight files it may read at most
ASKED: list[tuple[str, dict[str, Any] | list[Any], int]] = [
    (f"select a from {T} where a = :x", {"x": 5}, 1),
    (f"select a from {T} where a = ? and b < ?", [5, 100], 1),
    (f"select a from {T} where s = :s", {"s": "k0005"}, 1),
    (f"select a from {T} where a = :x or a = :x -- :y and ':z'", {"x": 5}, 1),
    (f"select a, ':x' as t, \"?\" as u from {T} where a = :x", {"x": 5}, 1),
    (f"select a::string from {T} where a = :x", {"x": 5}, 1),
    (f"select a from {T} where d = :d", {"d": date(2024, 1, 3)}, 2),
    (f"select a from {T} where ts < :t", {"t": datetime(2000, 1, 1)}, 1),
    (f"with c as (select * from {T} where a = :x) select * from c", {"x": 5}, 1),
    (f"select a from {T} where s = :s", {"s": "${x}"}, 9),
    (f"select a from {T} where s = :s", {"s": "o'k\\ \"?:x"}, 1),
    (f"select a from {T} where a < :x", {"x": Decimal("4.5")}, 1),
    (f"select a from {T} where a = :x and rand() < 2", {"x": 5}, 9),
]


@pytest.mark.parametrize(("sql", "args", "most"), ASKED)
def test_values_prune_as_literals_do(
    spark: SparkSession, table: str, sql: str, args: dict[str, Any] | list[Any], most: int
) -> None:
    frame, full = query(spark, sql, args), spark.sql(sql, args)
    assert frame.schema == full.schema
    assert sorted(frame.collect(), key=str) == sorted(full.collect(), key=str)
    assert files_read(frame) <= most


@pytest.mark.parametrize(
    ("sql", "args", "text"),
    [
        ("a = :x", {"x": 5}, "a =  5 "),
        ("a::int = ? /* ? */ and s = '?' -- ?", [5], "a::int =  5  /* ? */ and s = '?' -- ?"),
        ("a = :y", {"x": 5}, None),
        ("a = ?", [], None),
        ("a = ?", [1, 2], None),
        ("a = :x", {"x": "it's"}, "a =  'it\\'s' "),
    ],
)
def test_each_marker_is_one_literal(
    spark: SparkSession, sql: str, args: dict[str, Any] | list[Any], text: str | None
) -> None:
    assert with_literals(spark, sql, args) == text


def test_a_command_with_values_is_carried_out_once(spark: SparkSession, table: str) -> None:
    name = f"pruning_unit.{unique('into')}"
    spark.sql(f"CREATE TABLE {name} (a BIGINT) USING parquet")
    query(spark, f"INSERT INTO {name} SELECT a FROM {T} WHERE a = :x", {"x": 5})
    assert spark.table(name).count() == spark.table(T).where("a = 5").count()
