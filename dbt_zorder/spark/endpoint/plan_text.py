"""Compare the analysed plans of two queries by their text."""

from __future__ import annotations

import re

from dbt_zorder.spark.sql import NO_CODE

_QUOTED = re.compile(NO_CODE, re.DOTALL)
_ANALYSED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== Optimized Logical Plan ==", re.DOTALL)
_ID = re.compile(r"#(\d+)L?")
_AMBIGUOUS = re.compile(r"more fields|\.\.\.")
_TEXT = re.compile(r"'[\w .:/+-]*'", re.ASCII)
"""Texts that look like no other part of a plan, in which they stand without quotes."""


def show_all(one: str, other: str) -> bool:
    """Return whether the plans of two queries show every difference between them.

    A plan shows texts without quotes. So both queries must have the same texts, and no text
    may look like another part.
    """
    texts = [{match for match in _QUOTED.findall(sql) if match[0] != "`"} for sql in (one, other)]
    return texts[0] == texts[1] and all(map(_TEXT.fullmatch, texts[0]))


def same_plans(one: str, other: str) -> bool:
    """Return whether two results of EXPLAIN EXTENDED show the same analysed plan, whatever the ids of columns.

    False where a text may hide a difference, because Spark has shortened it.
    """
    plans = [_numbered(text) for text in (one, other)]
    return None not in plans and plans[0] == plans[1]


def _numbered(text: str) -> str | None:
    """Return the analysed plan with ids in the order of their first appearance; None if it is not whole."""
    found = _ANALYSED.search(text)
    if found is None or _AMBIGUOUS.search(found[1]):
        return None
    ids: dict[str, str] = {}
    return _ID.sub(lambda match: f"#{ids.setdefault(match[1], str(len(ids)))}", found[1])
