"""Parse the text of a predicate into sqlglot's tree, by the Spark dialect."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined,unused-ignore]

from dbt_zorder.errors import PredicateError
from dbt_zorder.pruning.predicate.dialect import SparkAsWritten, parse_tokens
from dbt_zorder.pruning.predicate.tokens import exact_literals, in_parentheses

_LOG = logging.getLogger("dbt_zorder")

Expr = Any
"""A node of sqlglot's tree; the name of its base class differs between versions."""


def parse(predicate: str) -> Expr | None:
    """Return sqlglot's tree of exactly one boolean expression; None if sqlglot's grammar does not support it.

    In that case Spark decides whether the text is valid, and all files are read. The text is parsed between
    parentheses, where a name such as ``comment`` or ``show`` begins no statement.

    Raises:
        PredicateError: the text is empty, or contains a second statement, an alias or, outside subqueries, a window
            function.
    """
    if not isinstance(predicate, str) or not predicate.strip():
        given = "none" if type(predicate).__name__ == "Undefined" else repr(predicate)
        msg = f"A predicate is one boolean SQL expression, such as \"a = 1 AND b > 'x'\". Given: {given}."
        raise PredicateError(msg)
    try:
        tokens = exact_literals(list(SparkAsWritten().tokenize(predicate)), predicate)
        if not tokens or any(token.token_type == TokenType.SEMICOLON for token in tokens):
            msg = f"A predicate is one expression, without ';'. Given: {predicate!r}."
            raise PredicateError(msg)
        statements = parse_tokens(in_parentheses(tokens, predicate), predicate)
    except PredicateError:
        raise
    except (SqlglotError, RecursionError, ValueError, OverflowError):  # the last two come from invalid code points
        return None
    except Exception as exc:  # sqlglot's parsers are not a stable interface
        _warn_of_sqlglot(f"{type(exc).__name__}: {exc}")
        return None
    tree: Expr = statements[0] if len(statements) == 1 else None
    if not isinstance(tree, exp.Condition | exp.Paren | exp.Tuple | exp.Query):
        return None
    has_window = any(window.find_ancestor(exp.Query) is None for window in tree.find_all(exp.Window))
    for found, what in ((has_window, "a window function"), (isinstance(tree.this, exp.Alias), "an alias (AS)")):
        if found:
            msg = f"A predicate cannot hold {what}: it is tested against one row of one table. Given: {predicate!r}."
            raise PredicateError(msg)
    return tree


@lru_cache
def _warn_of_sqlglot(reason: str) -> None:
    _LOG.warning("sqlglot %s cannot be used to read predicates, so no file is skipped: %s", version("sqlglot"), reason)


def contains_query(tree: Expr) -> bool:
    """Return whether a tree from ``parse`` contains a subquery."""
    return tree.find(exp.Query) is not None


def comment_continues(predicate: str) -> bool:
    r"""Return whether a ``--`` comment may continue after its line, which Spark allows after a ``\``."""
    return "--" in predicate and re.search(r"\\[\r\n]", predicate) is not None


def has_double_quotes(predicate: str) -> bool:
    """Return whether the predicate contains a double-quoted text, which under ANSI a setting makes a column name."""
    try:
        tokens = SparkAsWritten().tokenize(predicate)
    except (SqlglotError, RecursionError):
        return '"' in predicate
    return any(token.token_type == TokenType.STRING and predicate[token.start] == '"' for token in tokens)


def without_trailing_comment(predicate: str) -> str:
    """Return the text up to the end of its last token, so that a comment cannot hide the text after it.

    Raises:
        PredicateError: the end of the text is uncertain, so it cannot be put into a query.
    """
    try:
        tokens = SparkAsWritten().tokenize(predicate)
    except (SqlglotError, RecursionError) as exc:
        msg = f"The predicate cannot be read: {str(exc).splitlines()[0]}. Given: {predicate!r}."
        raise PredicateError(msg) from exc
    return predicate[: tokens[-1].end + 1]
