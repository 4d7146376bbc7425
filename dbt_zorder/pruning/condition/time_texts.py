"""Find texts whose meaning depends on the clock, such as 'now' and '09:00', anywhere in a query.

Spark's optimizer converts them to a date or a time. The statement's own text may not show them. They may be escaped,
computed, or inside the SQL of a function or a view over a DataFrame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.pruning.plans.tree import Expression, PlanTrees
from dbt_zorder.spark.jvm import class_named, items, jvm_of

PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"
"""Bit set by which Catalyst reports an expression's contents without a walk through it."""

_MOMENT = r"\s*(?:(?:now|today|tomorrow|yesterday)\b|T?\d{1,2}:)"
_VALUE = re.compile(_MOMENT, re.IGNORECASE)
_QUOTED = re.compile(rf"""['"]{_MOMENT}""", re.IGNORECASE)
_TIME_TYPES = frozenset({"date", "timestamp", "timestamp_ntz"})
_TEXT_TYPES = ("string", "char", "varchar")


_WHOLE = frozenset(
    {"Aggregate", "CTERelationDef", "CTERelationRef", "Distinct", "Except", "Filter", "Generate", "GlobalLimit"}
    | {"Intersect", "Join", "LocalLimit", "LogicalRelation", "Offset", "OneRowRelation", "Project", "Sort"}
    | {"SubqueryAlias", "Union", "Window", "WithCTE"}
)
"""Nodes all of whose expressions are in their JSON; others may lack expressions."""


def has_moment(spark: SparkSession, analyzed: Any, sql: str) -> bool:
    """Return whether a text in a query may depend on the clock, by the query's plan and by its own text.

    For a typed literal such as ``DATE 'today'`` the plan contains only the value. So the SQL of views and functions is
    searched as well.
    """
    texts = [sql]
    patterns = class_named(jvm_of(spark), PATTERNS)
    literal, cast = patterns.LITERAL(), patterns.CAST()
    waiting: list[Any] = []
    plans = PlanTrees(analyzed)
    for number, node, _ in plans.nodes():
        parts = [part for one in node.all_expressions() for part in one.walk()]
        if any(part.kind == "Literal" and _is_moment_text(part) for part in parts):
            return True
        # Spark 3.5 leaves out what Expand projects
        is_whole = node.kind in _WHOLE or (node.kind == "Expand" and bool(node.expressions("projections")))
        if is_whole and not any(map(_is_unclear, parts)):
            continue
        in_jvm = plans.in_jvm(number, node)
        if node.kind == "View" and in_jvm.desc().viewText().isDefined():
            texts.append(str(in_jvm.desc().viewText().get()))
        elif node.kind == "SQLFunctionNode":
            texts += _bodies(in_jvm.function())
        waiting += items(in_jvm.expressions())
    while waiting:
        part = waiting.pop()
        if not part.containsPattern(literal) and not part.containsPattern(cast):
            continue
        kind = part.getClass().getSimpleName()
        if kind == "SQLScalarFunction":
            texts += _bodies(part.function())
        if (kind == "Literal" and _is_moment(part)) or (kind == "Cast" and _is_computed(part)):
            return True
        waiting += items(part.children())
    return any(map(_QUOTED.search, texts))


def _is_moment_text(literal: Expression) -> bool:
    return str(literal.fields["dataType"]).startswith(_TEXT_TYPES) and bool(_VALUE.match(str(literal.fields["value"])))


def _is_unclear(part: Expression) -> bool:
    """Return whether the JSON of an expression leaves open if it depends on the clock."""
    if part.kind != "Cast" or str(part.fields["dataType"]) not in _TIME_TYPES:  # a struct's type is no text
        return part.kind == "SQLScalarFunction"
    child = part.children[0]
    return child.kind != "Literal" and all(one.kind != "AttributeReference" for one in child.walk())


def _bodies(function: Any) -> Iterator[str]:
    return (str(text.get()) for text in (function.exprText(), function.queryText()) if text.isDefined())


def _is_moment(literal: Any) -> bool:
    return _is_text(literal) and literal.value() is not None and bool(_VALUE.match(str(literal.value().toString())))


def _is_computed(cast: Any) -> bool:
    """Return whether a cast makes a date or a time of a text that is neither a literal nor a column's value.

    Nobody can say which date or time such a text gives.
    """
    child = cast.child()
    if not _is_text(child) or str(cast.dataType().typeName()) not in _TIME_TYPES:
        return False
    return child.getClass().getSimpleName() != "Literal" and bool(child.references().isEmpty())


def _is_text(part: Any) -> bool:
    return str(part.dataType().typeName()).startswith(_TEXT_TYPES)
