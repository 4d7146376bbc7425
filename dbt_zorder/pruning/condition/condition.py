"""Condition that a file's statistics must satisfy for the file to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt_zorder.pruning.predicate.tree import Column


@dataclass(frozen=True)
class Atom:
    """One test that a file's statistics can fail.

    Attributes:
        text: part of the predicate, as shown to users.
        may_match: SQL over the stats columns, TRUE unless no row of the file can make the part TRUE.
        columns: columns whose statistics ``may_match`` uses; it counts only if these are sound.
    """

    text: str
    may_match: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Unknown:
    """Part of the predicate that cannot exclude files, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True)
class All:
    """Conjunction (AND): a file must satisfy every term."""

    terms: tuple[Atom | Unknown | All | Any, ...]


@dataclass(frozen=True)
class Any:
    """Disjunction (OR): a file must satisfy at least one term."""

    terms: tuple[Atom | Unknown | All | Any, ...]


def leaves(condition: Atom | Unknown | All | Any) -> Iterator[Atom | Unknown]:
    """Yield atoms and unknown parts, in the order of the predicate's text."""
    stack: list[Atom | Unknown | All | Any] = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, All | Any):
            stack.extend(reversed(item.terms))
        else:
            yield item


def can_exclude(condition: Atom | Unknown | All | Any) -> bool:
    """Return whether any statistics could exclude a file. An OR with an unknown term never can."""
    if isinstance(condition, Any):
        return all(can_exclude(term) for term in condition.terms)
    if isinstance(condition, All):
        return any(can_exclude(term) for term in condition.terms)
    return isinstance(condition, Atom)
