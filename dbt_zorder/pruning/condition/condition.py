"""The condition on a file's statistics: what must hold if the file is to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt_zorder.pruning.predicate.tree import Column


@dataclass(frozen=True)
class Atom:
    """One test that a file's statistics can fail.

    Attributes:
        text: the part of the predicate, for people.
        may_match: SQL over the stats columns, TRUE unless no row of the file can make the part TRUE.
        columns: whose statistics must be sound for ``may_match`` to count.
    """

    text: str
    may_match: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Unknown:
    """A part of the predicate that says nothing about files, and why."""

    text: str
    reason: str


@dataclass(frozen=True)
class All:
    """Every term must hold (AND)."""

    terms: tuple[Atom | Unknown | All | Any, ...]


@dataclass(frozen=True)
class Any:
    """One term must hold (OR)."""

    terms: tuple[Atom | Unknown | All | Any, ...]


def leaves(condition: Atom | Unknown | All | Any) -> Iterator[Atom | Unknown]:
    """Yield atoms and unknown parts, in the order in which they were written."""
    stack: list[Atom | Unknown | All | Any] = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, All | Any):
            stack.extend(reversed(item.terms))
        else:
            yield item


def can_exclude(condition: Atom | Unknown | All | Any) -> bool:
    """Tell whether any statistics could exclude a file: an OR with an unknown term never does."""
    if isinstance(condition, Any):
        return all(can_exclude(term) for term in condition.terms)
    if isinstance(condition, All):
        return any(can_exclude(term) for term in condition.terms)
    return isinstance(condition, Atom)
