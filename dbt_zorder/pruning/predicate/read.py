"""Convert sqlglot's tree of a predicate to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from dbt_zorder.pruning.predicate.dialect import SparkAsWritten
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import Expr
from dbt_zorder.pruning.predicate.tokens import typed_literal
from dbt_zorder.pruning.predicate.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Opaque,
    Or,
    Row,
    Text,
)

_COMPARISONS: dict[type[Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "||",
}
_IGNORED_ARGS = {"safe", "typed", "coalesce", "_type"}
"""Arguments of sqlglot's nodes that only affect how other dialects write them, not their meaning."""


def read(tree: Expr, names: Names) -> Node:
    """Return our tree of sqlglot's; an unsupported part becomes :class:`Opaque`."""
    return _node(tree, names)


_ROW = "named_struct"


def _node(e: Expr, names: Names) -> Node:
    if isinstance(e, exp.Paren):
        return _node(e.this, names) if _only(e, "this") else _opaque(e)
    if isinstance(e, exp.And | exp.Or):
        if not _only(e, "this", "expression"):
            return _opaque(e)
        # A chain of one operator is one node, as in Spark's parser. A part in parentheses stays a node of its own.
        terms = tuple(_node(term, names) for term in _chain(e))
        return And(terms) if isinstance(e, exp.And) else Or(terms)
    reader = _READERS.get(type(e))
    return _opaque(e) if reader is None else (reader(e, names) or _opaque(e))


def _chain(e: Expr) -> list[Expr]:
    terms: list[Expr] = []
    stack = [e]
    while stack:
        node = stack.pop()
        if type(node) is type(e):
            stack.extend((node.expression, node.this))
        else:
            terms.append(node)
    return terms


def _only(e: Expr, *allowed: str) -> bool:
    """Return whether the node has no arguments beyond ``allowed``, such as SYMMETRIC or a future version's escape."""
    return all(
        name in allowed or name in _IGNORED_ARGS or value is None or value is False or value == []
        for name, value in e.args.items()
    )


def _opaque(e: Expr, reason: str = "") -> Opaque:
    text = e.sql(dialect=SparkAsWritten, normalize_functions=False)
    return Opaque(text, reason or "this form of expression is not analysed")


def _compare(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expression"):
        return None
    return Compare(_COMPARISONS[type(e)], _node(e.this, names), _node(e.expression, names))


def _distinct(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expression"):
        return None
    return Not(Compare("<=>", _node(e.this, names), _node(e.expression, names)))


def _arithmetic(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expression"):
        return None
    return Arithmetic(_ARITHMETIC[type(e)], _node(e.this, names), _node(e.expression, names))


def _not(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this"):
        return None
    child = _node(e.this, names)
    if isinstance(e.this, exp.Is) and isinstance(child, IsNull) and not child.negated:
        return IsNull(child.child, negated=True)
    return Not(child)


def _neg(e: Expr, names: Names) -> Node | None:
    return Negative(_node(e.this, names)) if _only(e, "this") else None


def _is(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expression"):
        return None
    if isinstance(e.expression, exp.Null):
        return IsNull(_node(e.this, names))
    if isinstance(e.expression, exp.Boolean):
        return Compare("<=>", _node(e.this, names), _node(e.expression, names))
    return None


def _between(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "low", "high"):
        return None
    return Between(_node(e.this, names), _node(e.args["low"], names), _node(e.args["high"], names))


def _in(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expressions"):
        return None
    child, *values = (_row(one, names) or _node(one, names) for one in (e.this, *e.expressions))
    return In(child, tuple(values))


def _row(e: Expr, names: Names) -> Row | None:
    """Return a row from ``named_struct('a', a, 'b', b)``, as Spark's plans show ``(a, b)``; None for other forms."""
    if not isinstance(e, exp.Anonymous) or str(e.this).lower() != _ROW or _ROW in names.hidden:
        return None
    return Row(tuple(_node(item, names) for item in e.expressions[1::2]))


def _tuple(e: Expr, names: Names) -> Node | None:
    return Row(tuple(_node(item, names) for item in e.expressions)) if _only(e, "expressions") else None


def _like(e: Expr, names: Names) -> Node | None:
    escape = None
    if isinstance(e, exp.Escape):
        mark = e.expression
        if not (isinstance(e.this, exp.Like | exp.ILike) and isinstance(mark, exp.Literal) and mark.is_string):
            return None
        escape, e = mark.this, e.this
    if not _only(e, "this", "expression", "negate") or isinstance(e.expression, exp.Any | exp.All):
        return None
    like = Like(_node(e.this, names), _node(e.expression, names), escape, isinstance(e, exp.ILike))
    return Not(like) if e.args.get("negate") else like


def _column(e: Expr, names: Names) -> Node | None:
    identifiers = [part for part in e.parts if isinstance(part, exp.Identifier)] if isinstance(e, exp.Column) else []
    if not identifiers or len(identifiers) != len([value for value in e.args.values() if value]):
        return None
    first = identifiers[0]
    if len(identifiers) == 1 and not first.args.get("quoted") and typed_literal(first.name):
        return Literal(first.name)
    found = names.resolve([part.name for part in identifiers])
    return _opaque(e, found) if isinstance(found, str) else found


def _literal(e: Expr, names: Names) -> Node | None:
    return Text(e.this) if e.is_string else Literal(e.this)


def _raw_string(e: Expr, names: Names) -> Node | None:
    return Text(e.this)


def _cast(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "to") or e.args.get("safe"):  # TRY_CAST
        return None
    return Cast(_node(e.this, names), e.args["to"].sql(dialect=SparkAsWritten))


def _call(e: Expr, names: Names) -> Node | None:
    if not (_only(e, "this", "expressions") and isinstance(e.this, str) and e.this.isidentifier()):
        return None
    if e.this.lower() in names.hidden:
        return _hidden(e, e.this)
    return Call(e.this, tuple(_node(arg, names) for arg in e.expressions))


def _if(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "true", "false") or not (e.args.get("true") and e.args.get("false")):
        return None
    if "if" in names.hidden:
        return _hidden(e, "if")
    return Call("if", tuple(_node(e.args[name], names) for name in ("this", "true", "false")))


def _case(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "ifs", "default") or not all(_only(when, "this", "true") for when in e.args["ifs"]):
        return None
    tests = tuple(_node(when.this, names) for when in e.args["ifs"])
    if e.this is not None:
        operand = _node(e.this, names)
        tests = tuple(Compare("=", operand, test) for test in tests)
    default = e.args.get("default")
    values = tuple(_node(when.args["true"], names) for when in e.args["ifs"])
    return Case(tests, values, None if default is None else _node(default, names))


def _rlike(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "expression"):
        return None
    return Call("rlike", (_node(e.this, names), _node(e.expression, names)))


def _hidden(e: Expr, name: str) -> Opaque:
    return _opaque(e, f"this session has a function {name}() of its own, which hides Spark's")


def _interval(e: Expr, names: Names) -> Node | None:
    return Literal(f"({e.sql(dialect=SparkAsWritten)})") if not e.find(exp.Column) else None


_READERS: dict[type[Expr], Callable[[Any, Names], Node | None]] = {
    **dict.fromkeys(_COMPARISONS, _compare),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.NullSafeNEQ: _distinct,
    exp.Not: _not,
    exp.Neg: _neg,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Tuple: _tuple,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.RawString: _raw_string,
    exp.Null: lambda e, names: Literal("NULL"),
    exp.Boolean: lambda e, names: Literal("TRUE" if e.this else "FALSE"),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Anonymous: _call,
    exp.If: _if,
    exp.Case: _case,
    exp.RegexpLike: _rlike,
    exp.Interval: _interval,
}
