"""The table of functions: what it accepts, and what the documentation says of its arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from dbt_zorder.pruning.condition.constants import REPEATABLE
from dbt_zorder.pruning.condition.monotone import ARGUMENTS, FUNCTIONS, falls, rules_of
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import Node

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "predicates.md"
SCHEMA = StructType([StructField("c", IntegerType()), StructField("o", IntegerType())])


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


def _tree(sql: str) -> Node:
    return read(parse(f"{sql} IS NULL"), Names(SCHEMA)).child  # type: ignore[attr-defined,no-any-return]


def test_the_documentation_explains_the_arguments() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for word, (_, meaning) in ARGUMENTS.items():
        assert word in ("c", "1") or f"`{word}` is {meaning}" in text, f"{DOCUMENT.name} does not say what {word} is"


def test_every_function_of_the_table_is_repeatable() -> None:
    names = {rule.name for rule in FUNCTIONS if rule.name.isidentifier()}
    assert names <= REPEATABLE


@pytest.mark.parametrize(
    ("sql", "forms"),
    [
        ("date_trunc('Month', c)", ["date_trunc(w, c)"]),
        ("date_trunc('decade', c)", []),
        ("trunc(c, 'day')", []),
        ("date_format(c, 'yyyy-MM-dd''T''HH')", ["date_format(c, p)"]),
        ("date_format(c, 'MM-yyyy')", []),
        ("date_format(c, 'yyyy-dd')", []),
        ("date_format(c, 'yyyy-MM hh')", []),
        ("date_format(c, 'YYYY')", []),
        ("substr(c, 1, 3)", ["substr(c, 1, m)"]),
        ("substr(c, 2, 3)", []),
        ("substr(c, -1, 3)", []),
        ("left(c, -1)", []),
        ("concat('x', c)", ["concat(t, c)"]),
        ("concat(c, 'x')", []),
        ("(c + o)", []),
        ("(c + 1.5)", ["c + v"]),
        ("(2 - c)", ["v - c"]),
        ("(1 / c)", []),
        ("(c % 2)", []),
        ("datediff(c, o)", []),
        ("datediff(DATE '2024-01-01', c)", ["datediff(k, c)"]),
        ("upper(c)", []),
    ],
)
def test_only_what_keeps_the_order_has_a_rule(sql: str, forms: list[str]) -> None:
    assert [rule.form for rule, _ in rules_of(_tree(sql))] == forms


@pytest.mark.parametrize(
    ("sql", "expected"), [("(c * 2)", False), ("(-2.5 * c)", True), ("(c * 0)", None), ("(c / -1)", True)]
)
def test_the_sign_of_a_factor_decides_the_order(sql: str, expected: bool | None) -> None:
    tree = _tree(sql)
    ((rule, _),) = rules_of(tree)
    assert falls(rule, tree) is expected
