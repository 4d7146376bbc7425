"""From the text of a predicate to its tree, by sqlglot's Spark dialect."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined,unused-ignore]

from dbt_zorder.errors import PredicateError
from dbt_zorder.pruning.names import Names
from dbt_zorder.pruning.tokens import exact_literals, in_parentheses, typed_literal
from dbt_zorder.pruning.tree import (
    And,
    Arithmetic,
    Between,
    Call,
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

Expr = Any
"""A node of sqlglot's tree; the class it derives from has changed its name between versions."""

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
"""Arguments of sqlglot's nodes that say how other dialects are written, not what the predicate means."""


class _Spark(Spark):
    """Spark's grammar with every function left as the user wrote it: sqlglot would translate many of them."""

    class Parser(Spark.Parser):  # type: ignore[misc,name-defined,valid-type,unused-ignore]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name in {"CAST", "TRY_CAST", "EXTRACT"}
        }
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012


def parse(predicate: str) -> Expr | None:
    """Return sqlglot's tree of exactly one boolean expression; None if sqlglot's grammar does not have it.

    Then Spark decides whether it is valid, and all files are read. It is parsed between parentheses, in which a name
    such as ``comment`` or ``show`` begins no statement.

    Raises:
        PredicateError: the text is empty, or holds a second statement, a window function or an alias.
    """
    if not isinstance(predicate, str) or not predicate.strip():
        msg = f"A predicate is one boolean SQL expression, such as \"a = 1 AND b > 'x'\". Given: {predicate!r}."
        raise PredicateError(msg)
    dialect = _Spark()
    try:
        tokens = exact_literals(list(dialect.tokenize(predicate)), predicate)
        if not tokens or any(token.token_type == TokenType.SEMICOLON for token in tokens):
            msg = f"A predicate is one expression, without ';'. Given: {predicate!r}."
            raise PredicateError(msg)
        statements = dialect.parser().parse(in_parentheses(tokens, predicate), predicate)
    except (SqlglotError, RecursionError):
        return None
    tree: Expr = statements[0] if len(statements) == 1 else None
    if not isinstance(tree, exp.Condition | exp.Paren | exp.Tuple | exp.Query):
        return None
    has_window = tree.find(exp.Window) is not None
    for found, what in ((has_window, "a window function"), (isinstance(tree.this, exp.Alias), "an alias (AS)")):
        if found:
            msg = f"A predicate cannot hold {what}: it is tested against one row of one table. Given: {predicate!r}."
            raise PredicateError(msg)
    return tree


def holds_query(tree: Expr) -> bool:
    """Tell whether a subquery is in what ``parse`` gave."""
    return tree.find(exp.Query) is not None


def comment_continues(predicate: str) -> bool:
    r"""Tell whether a ``--`` comment may go on behind its line, as Spark lets it do after a ``\``."""
    return "--" in predicate and re.search(r"\\[\r\n]", predicate) is not None


def without_trailing_comment(predicate: str) -> str:
    """Return the text up to the end of its last token, so that nothing behind it falls into a comment.

    Raises:
        PredicateError: the text has no end that is known, so it cannot be put into a query.
    """
    try:
        tokens = _Spark().tokenize(predicate)
    except (SqlglotError, RecursionError) as exc:
        msg = f"The predicate cannot be read: {str(exc).splitlines()[0]}. Given: {predicate!r}."
        raise PredicateError(msg) from exc
    return predicate[: tokens[-1].end + 1]


def read(tree: Expr, names: Names) -> Node:
    """Return our tree of what ``parse`` gave; what it does not know becomes :class:`Opaque`."""
    return _node(tree, names)


def _node(e: Expr, names: Names) -> Node:
    if isinstance(e, exp.Paren):
        return _node(e.this, names) if _only(e, "this") else _opaque(e)
    if isinstance(e, exp.And | exp.Or):
        if not _only(e, "this", "expression"):
            return _opaque(e)
        # A chain of one operator is one node, as in Spark's parser; what is in parentheses stays a node of its own.
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
    """Tell whether the node says nothing beyond ``allowed``, such as SYMMETRIC or an escape of a later version."""
    return all(
        name in allowed or name in _IGNORED_ARGS or value is None or value is False or value == []
        for name, value in e.args.items()
    )


def _opaque(e: Expr, reason: str = "") -> Opaque:
    text = e.sql(dialect=_Spark, normalize_functions=False)
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
    return In(_node(e.this, names), tuple(_node(value, names) for value in e.expressions))


def _tuple(e: Expr, names: Names) -> Node | None:
    return Row(tuple(_node(item, names) for item in e.expressions)) if _only(e, "expressions") else None


def _like(e: Expr, names: Names) -> Node | None:
    escape = None
    if isinstance(e, exp.Escape):
        mark = e.expression
        if not (isinstance(e.this, exp.Like) and isinstance(mark, exp.Literal) and mark.is_string):
            return None
        escape, e = mark.this, e.this
    if not _only(e, "this", "expression", "negate") or isinstance(e.expression, exp.Any | exp.All):
        return None
    like = Like(_node(e.this, names), _node(e.expression, names), escape)
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
    if not _only(e, "this", "to"):
        return None
    return Cast(_node(e.this, names), e.args["to"].sql(dialect=_Spark))


def _call(e: Expr, names: Names) -> Node | None:
    if not (_only(e, "this", "expressions") and isinstance(e.this, str) and e.this.isidentifier()):
        return None
    return Call(e.this, tuple(_node(arg, names) for arg in e.expressions))


def _if(e: Expr, names: Names) -> Node | None:
    if not _only(e, "this", "true", "false") or not (e.args.get("true") and e.args.get("false")):
        return None
    return Call("if", tuple(_node(e.args[name], names) for name in ("this", "true", "false")))


def _interval(e: Expr, names: Names) -> Node | None:
    return Literal(f"({e.sql(dialect=_Spark)})") if not e.find(exp.Column) else None


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
    exp.Interval: _interval,
}
