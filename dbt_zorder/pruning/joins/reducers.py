"""Find semijoin reducers: the other side of a join, whose keys bound the rows that matter of a scan.

A row of a scan matters only if the statement's answer may change without it. The walk goes down from each join, and
carries what bounds the rows that matter as far as it stays true (Bernstein and Chiu, "Using semi-joins to solve
relational queries", 1981; Kandula et al., "Pushing data-induced predicates through joins in big-data clusters", 2020).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt_zorder.pruning.condition.atoms import FLIP
from dbt_zorder.pruning.plans.tree import Expression, PlanNode, sources

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}

_LEFT_VANISH = frozenset({"Inner", "Cross", "LeftSemi", "RightOuter"})
"""Joins that drop a row of their left side without a match."""

_RIGHT_VANISH = frozenset({"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin"})
"""Joins in which a row of their right side without a match changes nothing."""

_ROWS_AT_WILL = frozenset({"Inner", "Cross", "LeftSemi", "LeftAnti", "LeftOuter", "RightOuter", "ExistenceJoin"})
"""Joins below which rows that do not matter above need not be read; a full outer join fills in the rows of both."""

_DEPTH_AT_MOST = 3
"""Maximum number of reducers within each other; deeper ones are many, and save little."""

_WIDENED = {"byte": 0, "short": 1, "integer": 2, "long": 3}


@dataclass(frozen=True)
class Reducer:
    """A side of a join that bounds the rows that matter of the other side.

    Only rows whose attribute compares by ``op`` with a key of the side matter.

    Attributes:
        side: plan whose rows are the keys.
        attribute: id of the attribute of the side that is the key.
        op: one of ``= < <= > >=``; the row's value is to its left.
        within: reducers of the side's own rows, by attribute: a dimension may be joined to a filtered one further up.
    """

    side: PlanNode
    attribute: int
    op: str
    within: tuple[tuple[int, Reducer], ...] = ()

    @property
    def depth(self) -> int:
        """Return how many reducers lie within each other."""
        return 1 + max((reducer.depth for _, reducer in self.within), default=0)


Wanted = Mapping[int, Sequence[Reducer]]
"""Reducers of the rows that matter, by attribute."""


def find_reducers(tree: PlanNode) -> dict[int, list[tuple[str, Reducer]]]:
    """Return the reducers of each scan in a plan, with the column that each bounds, by the scan's first attribute.

    A plan that names two scans by the same attribute gives none of either.
    """
    found: dict[int, list[tuple[str, Reducer]]] = {}
    twice: set[int] = set()
    for leaf, wanted in _visit(tree, {}):
        output = leaf.expressions("output")
        first = output[0].attribute if output else None
        if first is None:
            continue
        if first in found:
            twice.add(first)
        columns = {one.attribute: str(one.fields["name"]) for one in output}
        found[first] = [(columns[attribute], reducer) for attribute, reducers in wanted.items() for reducer in reducers]
    return {first: reducers for first, reducers in found.items() if first not in twice}


def _visit(node: PlanNode, wanted: Wanted) -> Iterator[tuple[PlanNode, Wanted]]:
    """Yield each scan below a node with its reducers.

    Args:
        node: root of a part of the plan.
        wanted: reducers of the rows that matter of this node.
    """
    if node.kind == "LogicalRelation":
        yield node, wanted
    elif node.kind == "Join":
        left, right = node.children
        for child, its in zip(node.children, _of_sides(node, left, right, wanted), strict=True):
            yield from _visit(child, its)
    elif node.kind == "Union":
        for child in node.children:
            same = dict(zip(node.output, child.output, strict=True))
            yield from _visit(child, _renamed(wanted, same))
    else:
        below = _below(node, wanted)
        for child in node.children:
            yield from _visit(child, below)


def _below(node: PlanNode, wanted: Wanted) -> Wanted:
    """Return the reducers of a node's only child."""
    match node.kind:
        case "Project":
            return _renamed(wanted, sources(node.expressions("projectList")))
        case "Aggregate":
            # without a row that matters, a group does not matter either; all rows of a group have its key
            groups = {one.attribute for one in node.expressions("groupingExpressions")}
            renamed = sources(node.expressions("aggregateExpressions"))
            return _renamed(wanted, {id_: source for id_, source in renamed.items() if source in groups})
        case "Window" | "WindowGroupLimit":
            parts = {one.attribute for one in node.expressions("partitionSpec")}
            return {id_: reducers for id_, reducers in wanted.items() if id_ in parts}
        case "Filter" | "Sort" | "Repartition" | "RepartitionByExpression" | "RebalancePartitions":
            return wanted
        case "Generate":
            given = set(node.children[0].output)
            return {id_: reducers for id_, reducers in wanted.items() if id_ in given}
    return {}  # a limit counts all rows, and nodes of other kinds may do so


def _of_sides(node: PlanNode, left: PlanNode, right: PlanNode, wanted: Wanted) -> tuple[Wanted, Wanted]:
    """Return the reducers of both sides of a join."""
    kind = node.join_type
    of_left, of_right = (_among(wanted, side) if kind in _ROWS_AT_WILL else {} for side in (left, right))
    inside_left, inside_right = (_flat(its) for its in (of_left, of_right))
    condition = node.expressions("condition")
    for op, one, other in _pairs(condition[0], left, right) if condition else ():
        carried_right = of_left.get(one, []) if op == "=" and kind in _RIGHT_VANISH else []
        carried_left = of_right.get(other, []) if op == "=" and kind in _LEFT_VANISH else []
        if kind in _LEFT_VANISH:
            of_left[one] = [*of_left.get(one, []), Reducer(right, other, op, inside_right), *carried_left]
        if kind in _RIGHT_VANISH:
            of_right[other] = [*of_right.get(other, []), Reducer(left, one, FLIP[op], inside_left), *carried_right]
    return of_left, of_right


def _flat(wanted: Wanted) -> tuple[tuple[int, Reducer], ...]:
    found = ((id_, reducer) for id_, reducers in wanted.items() for reducer in reducers)
    return tuple((id_, reducer) for id_, reducer in found if reducer.depth < _DEPTH_AT_MOST)


def _among(wanted: Wanted, side: PlanNode) -> dict[int, list[Reducer]]:
    given = set(side.output)
    return {id_: list(reducers) for id_, reducers in wanted.items() if id_ in given}


def _pairs(condition: Expression, left: PlanNode, right: PlanNode) -> Iterator[tuple[str, int, int]]:
    """Yield operator, left and right attribute of each term of a join's condition that compares the two sides."""
    lefts, rights = set(left.output), set(right.output)
    for term in condition.conjuncts():
        if term.kind not in _COMPARISONS:
            continue
        op = _COMPARISONS[term.kind]
        one, other = (_compared(child) for child in term.children)
        if one is None or other is None:
            continue
        if one in lefts and other in rights:
            yield op, one, other
        elif one in rights and other in lefts:
            yield FLIP[op], other, one


def _compared(side: Expression) -> int | None:
    """Return the attribute that one side of a comparison is, perhaps as a wider integer; None for any other."""
    if side.kind == "Cast":
        child = side.children[0]
        ranks = [_WIDENED.get(str(one.fields.get("dataType"))) for one in (child, side)]
        if child.kind != "AttributeReference" or None in ranks or sorted(ranks) != ranks:  # type: ignore[type-var]
            return None
        side = child
    return side.attribute if side.kind == "AttributeReference" else None


def _renamed(wanted: Wanted, names: Mapping[int | None, int | None] | Mapping[int, int]) -> Wanted:
    """Return the reducers by other attributes, without those of attributes that have no other name."""
    found: dict[int, list[Reducer]] = defaultdict(list)
    for id_, reducers in wanted.items():
        source = names.get(id_)
        if source is not None:
            found[source] += reducers
    return found
