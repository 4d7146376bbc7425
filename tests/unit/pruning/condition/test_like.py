"""Patterns of RLIKE: bounds decide only how a text begins."""

from __future__ import annotations

import pytest

from dbt_zorder.pruning.condition.like import Pattern, Tail, split_regex


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


@pytest.mark.parametrize(
    ("pattern", "prefix", "tail"),
    [
        ("^abc", "abc", Tail.ANYTHING),
        ("^abc.*", "abc", Tail.ANYTHING),
        ("^abc$", "abc", Tail.OTHER),
        (r"^a\.b", "a.b", Tail.ANYTHING),
        ("^abc+", "abc", Tail.OTHER),
        ("^abc?d", "ab", Tail.OTHER),
        ("^abc*", "ab", Tail.OTHER),
        ("^abc{0,2}", "ab", Tail.OTHER),
        ("^ab[cd]", "ab", Tail.OTHER),
        (r"^ab\d", "ab", Tail.OTHER),
        ("^a(b)", "a", Tail.OTHER),
    ],
)
def test_a_pattern_begins_with_its_literal_text(pattern: str, prefix: str, tail: Tail) -> None:
    assert split_regex(pattern) == Pattern(prefix, tail)


@pytest.mark.parametrize(
    "pattern",
    ["abc", "", "^", "^abc|d", "^(?i)abc", "(?i)^abc", "^a?", "^a*b", "^[a]", "^abc(", r"^\d", ".^abc", r"\^a"],
)
def test_other_patterns_have_none(pattern: str) -> None:
    assert split_regex(pattern) is None
