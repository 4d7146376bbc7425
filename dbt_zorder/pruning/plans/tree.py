"""Read an optimized plan of Spark's as a tree: its JSON needs one call to the JVM, its nodes ten each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named, items, jvm_of

METADATA = "_metadata"
"""Name of the attribute by which a scan gives the path and the size of a row's file."""


@dataclass(frozen=True)
class Expression:
    """An expression of a plan.

    Attributes:
        kind: simple name of its class.
        fields: its fields in Spark's JSON.
        children: its arguments.
    """

    kind: str
    fields: Mapping[str, Any] = field(repr=False)
    children: tuple[Expression, ...] = ()

    @property
    def attribute(self) -> int | None:
        """Return the id of the attribute that the expression refers to or defines; None for any other expression."""
        found = self.fields.get("exprId")
        return int(found["id"]) if found and self.kind in ("AttributeReference", "Alias") else None

    def walk(self) -> Iterator[Expression]:
        """Yield this expression and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def refers_to(self, name: str) -> bool:
        """Return whether the expression contains an attribute of this name."""
        return any(part.kind == "AttributeReference" and part.fields["name"] == name for part in self.walk())

    def conjuncts(self) -> Iterator[Expression]:
        """Yield the terms of a conjunction (AND), or the expression itself."""
        if self.kind == "And":
            for child in self.children:
                yield from child.conjuncts()
        else:
            yield self


@dataclass(frozen=True)
class PlanNode:
    """A node of a plan.

    Attributes:
        kind: simple name of its class.
        fields: its fields in Spark's JSON.
        children: nodes that it reads.
        path: for each step from the root of the plan, the index of the child.
    """

    kind: str
    fields: Mapping[str, Any] = field(repr=False)
    children: tuple[PlanNode, ...]
    path: tuple[int, ...]
    _read_fields: dict[str, list[Expression]] = field(default_factory=dict, repr=False, compare=False)

    def walk(self) -> Iterator[PlanNode]:
        """Yield this node and all below it, a node before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    def expressions(self, name: str) -> list[Expression]:
        """Return the expressions in a field, in lists of any depth; empty if the node has no such field."""
        if name not in self._read_fields:
            self._read_fields[name] = [_read(_expression, one) for one in _lists(self.fields.get(name))]
        return self._read_fields[name]

    def all_expressions(self) -> Iterator[Expression]:
        """Yield the expressions in all fields, each without those below it."""
        for name in self.fields:
            yield from self.expressions(name)

    @cached_property
    def output(self) -> list[int | None]:
        """Return the ids of the attributes that the node gives; an empty list if the node is of another kind."""
        match self.kind:
            case "Project":
                return [one.attribute for one in self.expressions("projectList")]
            case "Aggregate":
                return [one.attribute for one in self.expressions("aggregateExpressions")]
            case "Window":
                return [*self.children[0].output, *(one.attribute for one in self.expressions("windowExpressions"))]
            case "Generate":
                return [*self.children[0].output, *(one.attribute for one in self.expressions("generatorOutput"))]
            case "Join" if self.join_type in ("LeftSemi", "LeftAnti", "ExistenceJoin"):
                return self.children[0].output
            case "Join":
                return [*self.children[0].output, *self.children[1].output]
            case "Union":  # Spark names its attributes by those of the first child
                return self.children[0].output
            case kind if kind in PASSING:
                return self.children[0].output
        return [one.attribute for one in self.expressions("output")]

    @property
    def join_type(self) -> str:
        """Return the simple name of a join's type."""
        found = self.fields["joinType"]
        name = found.get("object") or found.get("product-class")
        return str(name).rpartition(".")[2].rstrip("$")


PASSING = frozenset(
    {"Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Tail", "WindowGroupLimit"}
    | {"Repartition", "RepartitionByExpression", "RebalancePartitions"}
)
"""Nodes that give their child's attributes, and only its rows."""


def read_tree(plan: Any) -> PlanNode:
    """Return a plan of the JVM as a tree.

    Raises:
        Exception: the plan has a node that Spark does not write as JSON.
    """
    return _read(PlanNode, json.loads(plan.toJSON()))


class PlanTrees:
    """Plans of a statement and of its subqueries, with their trees; each tree is read once.

    Reading one raises an error of any kind if it has a node that Spark does not write as JSON.
    """

    def __init__(self, plan: Any) -> None:
        self._plan = plan
        self._in_jvm: dict[tuple[int, tuple[int, ...]], Any] = {}

    @cached_property
    def roots(self) -> list[Any]:
        """Return the plans: the statement's, then those of its subqueries."""
        return [self._plan, *items(self._plan.subqueriesAll())]

    @cached_property
    def trees(self) -> list[PlanNode]:
        """Return the tree of each plan."""
        return [read_tree(root) for root in self.roots]

    def nodes(self) -> Iterator[tuple[int, PlanNode, PlanNode | None]]:
        """Yield all nodes, each with the number of its tree and its parent; a node comes before its children."""
        for number, tree in enumerate(self.trees):
            parents: dict[tuple[int, ...], PlanNode] = {}
            for node in tree.walk():
                yield number, node, parents.get(node.path[:-1]) if node.path else None
                parents[node.path] = node

    def in_jvm(self, number: int, node: PlanNode) -> Any:
        """Return a node of a tree as the JVM's object."""
        return self._at(number, node.path)

    def _at(self, number: int, path: tuple[int, ...]) -> Any:
        if not path:
            return self.roots[number]
        if (number, path) not in self._in_jvm:  # a step needs two calls, and many nodes share their way
            self._in_jvm[number, path] = node_at(self._at(number, path[:-1]), path[-1:])
        return self._in_jvm[number, path]


def node_at(plan: Any, path: Sequence[int]) -> Any:
    """Return the node of a plan of the JVM at a path."""
    for step in path:
        plan = plan.children().apply(step)
    return plan


def below_aliases(node: PlanNode) -> PlanNode:
    """Return the node that subquery aliases name."""
    while node.kind == "SubqueryAlias":
        node = node.children[0]
    return node


def with_node(spark: SparkSession, plan: Any, path: Sequence[int], node: Any) -> Any:
    """Return a plan of the JVM with another node at a path, which gives the same attributes."""
    if not path:
        return node
    children = list(items(plan.children()))
    children[path[0]] = with_node(spark, children[path[0]], path[1:], node)
    return plan.withNewChildren(class_named(jvm_of(spark), "PythonUtils").toSeq(children))


def sources(expressions: Sequence[Expression]) -> dict[int, int]:
    """Return for each attribute of the expressions that only renames another one that other attribute."""
    found: dict[int, int] = {}
    for one in expressions:
        source = one.children[0] if one.kind == "Alias" else one
        if one.attribute is not None and source.kind == "AttributeReference" and source.attribute is not None:
            found[one.attribute] = source.attribute
    return found


_Fields = Mapping[str, Any]
_Path = tuple[int, ...]
_Tree = TypeVar("_Tree", PlanNode, Expression)


def _read(make: Callable[[str, _Fields, tuple[_Tree, ...], _Path], _Tree], nodes: Sequence[_Fields]) -> _Tree:
    """Return the tree of a list in which each node comes before its children.

    Args:
        make: function that returns a node of its kind, fields, children and path.
        nodes: fields of each node.
    """
    rest = iter(nodes)

    def read(path: _Path) -> _Tree:
        fields = next(rest)
        children = tuple(read((*path, number)) for number in range(fields["num-children"]))
        return make(_simple(fields), fields, children, path)

    tree = read(())
    assert next(rest, None) is None, "a plan or an expression has one root"
    return tree


def _lists(found: Any) -> Iterator[list[_Fields]]:
    """Yield the lists of fields that are expressions, in a field of a node or in lists of any depth in it."""
    if isinstance(found, list) and found:
        if isinstance(found[0], list):
            for one in found:
                yield from _lists(one)
        elif isinstance(found[0], dict) and "num-children" in found[0]:
            yield found


def _expression(kind: str, fields: _Fields, children: tuple[Expression, ...], _: _Path) -> Expression:
    return Expression(kind, fields, children)


def _simple(given: Mapping[str, Any]) -> str:
    return str(given["class"]).rpartition(".")[2].rstrip("$")
