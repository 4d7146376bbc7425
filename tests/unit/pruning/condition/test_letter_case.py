"""Prefixes without the case of letters, beside all characters of Unicode."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from dbt_zorder.pruning.condition.letter_case import find_prefixes, spell
from dbt_zorder.pruning.predicate.tree import Call, Compare, In, Like, Literal, Node, Text


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


C = Literal("c")


def test_both_cases_of_each_letter_begin_a_text() -> None:
    assert spell("bo_1", str.lower, 32) == ["BO_1", "Bo_1", "bO_1", "bo_1"]
    assert spell("BO", str.upper, 32) == ["BO", "Bo", "bO", "bo"]
    assert spell("bob", str.lower, 4) == ["BO", "Bo", "bO", "bo"]


@pytest.mark.parametrize("text", ["", "B", "éa"])
def test_nothing_is_certain_about_other_letters(text: str) -> None:
    assert spell(text, str.lower, 32) == [""]


@pytest.mark.parametrize("fold", [str.lower, str.upper])
def test_each_character_that_becomes_a_letter_is_among_them(fold: Callable[[str], str]) -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        folded = fold(character)
        if folded[:1].isascii():
            assert any(character.startswith(one) for one in spell(folded[:1], fold, 32)), hex(code)
        if folded.isascii() and len(folded) > 1:
            assert all(len(one) == 1 for one in spell(folded, fold, 32)), hex(code)


@pytest.mark.parametrize(
    ("node", "first"),
    [
        (Like(C, Text("B_%"), None, ignores_case=True), "B"),
        (Like(Call("LCASE", (C,)), Text("b%")), "B"),
        (Like(Call("upper", (C,)), Text("!_A%"), "!"), "_A"),
        (Call("startswith", (Call("ucase", (C,)), Text("B"))), "B"),
        (Compare("<=>", Text("b"), Call("lower", (C,))), "B"),
        (In(Call("lower", (C,)), (Text("b"), Text("x"))), "B"),
    ],
)
def test_tests_without_case_have_prefixes(node: Node, first: str) -> None:
    found = find_prefixes(node)
    assert found is not None
    assert found[0] == C
    assert found[1][0] == first


@pytest.mark.parametrize(
    "node",
    [
        Like(C, Text("b%")),
        Like(C, Text("b%"), "!", ignores_case=True),
        Like(C, Text("%b"), None, ignores_case=True),
        Compare("<", Call("lower", (C,)), Text("b")),
        Compare("=", Call("trim", (C,)), Text("b")),
        Compare("=", Call("lower", (C,)), Literal("5")),
        In(Call("lower", (C,)), (Text("b"), Literal("NULL"))),
        In(Call("lower", (C,)), tuple(Text(f"b{n}") for n in range(40))),
    ],
)
def test_others_have_none(node: Node) -> None:
    assert find_prefixes(node) is None
