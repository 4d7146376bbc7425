"""Split a function of several cases, such as ``coalesce(a, b)``, into its cases.

A predicate on ``coalesce(a, b)`` is TRUE if ``a`` is not NULL and the predicate is TRUE of ``a``, or if ``a`` is NULL
and it is TRUE of ``b``. The other functions are split alike. So each case is a plain predicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pyspark.sql import types as t

from dbt_zorder.pruning.predicate.tree import Call, Case, Column, Compare, IsNull, Literal, Node, Not, Or

BRANCHES = 64
"""Maximum number of cases that a predicate is split into."""

_DIGITS = 18
_NULL = Literal("NULL")


@dataclass(frozen=True)
class Branch:
    """One case: ``value`` is the result if every guard is TRUE."""

    guards: tuple[Node, ...]
    value: Node


def find_conditional(node: Node) -> Node | None:
    """Return the outermost function of several cases in ``node``; None if there is none, or if there are too many."""
    found = [(inner, branches(inner)) for inner in node.walk() if inner.columns()]
    split = [(inner, cases) for inner, cases in found if cases]
    return split[0][0] if split and prod(len(cases) for _, cases in split) <= BRANCHES else None


def branches(node: Node) -> list[Branch]:
    """Return the cases of a function; none if it has only one."""
    match node:
        case Case(conditions=conditions, values=values, default=default):
            return _in_turn(conditions, (*values, _NULL if default is None else default))
        case Call(name=name, args=args):
            match name.lower(), args:
                case ("coalesce", _) | ("nvl" | "ifnull", (_, _)):
                    return _first_value(args)
                case "if", (condition, value, other):
                    return _in_turn((condition,), (value, other))
                case "nvl2", (tested, value, other):
                    return _in_turn((IsNull(tested, negated=True),), (value, other))
                case "nullif", (value, other):
                    return _in_turn((Compare("=", value, other),), (_NULL, value))
    return []


def _first_value(values: Sequence[Node]) -> list[Branch]:
    nulls = [IsNull(value) for value in values]
    cases = [Branch((*nulls[:number], IsNull(value, negated=True)), value) for number, value in enumerate(values[:-1])]
    return [*cases, Branch(tuple(nulls[:-1]), values[-1])]


def _in_turn(conditions: Sequence[Node], values: Sequence[Node]) -> list[Branch]:
    failed = [not_true(condition) for condition in conditions]
    before = [tuple(test for test in failed[:number] if test is not None) for number in range(len(values))]
    cases = [Branch((*before[number], condition), values[number]) for number, condition in enumerate(conditions)]
    return [*cases, Branch(before[-1], values[-1])]


def not_true(condition: Node) -> Node | None:
    """Return a predicate that is TRUE where ``condition`` is FALSE or NULL; None if there is no simple one."""
    if isinstance(condition, IsNull) or (isinstance(condition, Compare) and condition.op == "<=>"):
        return Not(condition)
    match condition:
        case Column(data_type=t.BooleanType()):
            return Or((Not(condition), IsNull(condition)))
        case Compare(left=Column() as column, right=Literal(sql=sql)) if _same_kind(column.data_type, sql):
            return Or((Not(condition), IsNull(column)))
    return None


def _same_kind(column: t.DataType, literal: str) -> bool:
    """Return whether comparing a column with a literal casts neither to a type in which it might become NULL."""
    if isinstance(column, t.DateType):
        return literal.startswith("DATE ")
    return isinstance(column, t.IntegralType) and literal.isdecimal() and len(literal) <= _DIGITS
