from __future__ import annotations

import pytest

from dbt_zorder.pruning.predicate import dialect as as_written
from dbt_zorder.pruning.predicate.parse import _warn_of_sqlglot, parse
from tests.soundness.grammar import Grammar

BY_HAND = [
    "substring(a, 1, 2) = 'x' and coalesce(b, c) > 1 or left(d, 3) = 'abc'",
    "date(ts) = current_date",
    "current_date() > d and current_timestamp > ts and `current_date` = d",
    "a like (b) and a in (1, 2) and not (a > 1) and (a) or (b)",
    "cast(a as int) = 1 and try_cast(a as date) is null and extract(year from d) = 2024",
    "mod(a, 2) = 1 and a % 2 = 1 and floor(a) = 1 and if(a > 1, true, false)",
    "`substring`(a, 1) = 'x' and as_written(a) = 1",
    "lower(upper(trim(a))) = 'x' and a = chr(65) and position('a', b) = 1",
    "year(ts) = 2024 and date_trunc('month', ts) = timestamp'2024-01-01' and to_date(a) = d",
    "map('a', 1)['a'] = b and struct(a).a = 1 and size(split(a, ',')) = 2",
    "rlike(a, 'x') and a rlike ('x') and like(a, 'x') and nullif(a, 1) is null",
]


@pytest.mark.parametrize("predicate", BY_HAND)
def test_functions_keep_their_names_also_where_sqlglot_knows_them(
    predicate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived = parse(predicate)
    monkeypatch.setattr(as_written, "_is_compiled", lambda: True)
    assert repr(parse(predicate)) == repr(derived)


def test_a_parser_that_fails_by_itself_reads_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("another sqlglot")

    monkeypatch.setattr("dbt_zorder.pruning.predicate.parse.parse_tokens", fail)
    _warn_of_sqlglot.cache_clear()
    assert parse("a = 1") is None
    assert "no file is skipped: TypeError: another sqlglot" in caplog.text


def test_random_predicates_are_read_alike_without_a_parser_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = Grammar(11)
    predicates = [grammar.predicate() for _ in range(1_000)]
    derived = [repr(parse(one)) for one in predicates]
    monkeypatch.setattr(as_written, "_is_compiled", lambda: True)
    assert [one for one, tree in zip(predicates, derived, strict=True) if repr(parse(one)) != tree] == []
