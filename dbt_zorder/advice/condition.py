"""What a query asks of the rows of one table, as far as it decides which files the query reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

Term_co = TypeVar("Term_co", covariant=True)


@dataclass(frozen=True)
class Comparison:
    """A column compared with constants.

    Attributes:
        column: name of the column, as in the schema.
        op: one of ``= < <= > >=``, ``prefix`` (a text begins with the constant), and ``null`` (no constant).
        values: SQL text of the constants. A row matches if it matches one of them.
    """

    column: str
    op: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lookup:
    """A column whose value must be among those of a query: an inner join with a filtered table, or ``IN (SELECT)``.

    Attributes:
        column: name of the column, as in the schema.
        query: SQL text of a query of one column.
    """

    column: str
    query: str


@dataclass(frozen=True)
class Every(Generic[Term_co]):
    """A conjunction: a row matches if it matches every term."""

    terms: tuple[Term_co, ...]


@dataclass(frozen=True)
class Either(Generic[Term_co]):
    """A disjunction: a row matches if it matches at least one term."""

    terms: tuple[Term_co, ...]


Condition: TypeAlias = "Comparison | Lookup | Every[Condition] | Either[Condition]"


def leaves(condition: Condition | None) -> Iterator[Comparison | Lookup]:
    """Yield the comparisons and lookups of a condition; nothing if there is none."""
    if isinstance(condition, Every | Either):
        for term in condition.terms:
            yield from leaves(term)
    elif condition is not None:
        yield condition


@dataclass(frozen=True)
class Scan:
    """One place where a query reads the table.

    Attributes:
        name: name of the query: a model, a test, or one that the user gave.
        columns: names of the columns that the query needs.
        condition: what it asks of the rows; None if it asks nothing that could leave out a file.
        weight: how often the query runs, in comparison with the others.
    """

    name: str
    columns: frozenset[str]
    condition: Condition | None
    weight: float = 1.0
