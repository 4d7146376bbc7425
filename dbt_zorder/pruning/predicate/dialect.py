"""Parse with Spark's grammar but keep every function as the user wrote it: sqlglot would translate many of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined,unused-ignore]

_KNOWN = {"CAST", "TRY_CAST", "EXTRACT"}
"""Names that look like functions but have a grammar of their own."""

_WORDS = {"AND", "OR"}
"""Operators that other engines also have as functions."""

_MARK = "as_written__"
"""Prefix that hides a function's name from sqlglot's parser."""

_ENDS = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
}
"""Token types that end an operand: an operator follows, not a function."""


class SparkAsWritten(Spark):
    """Spark's dialect with a parser that keeps functions as written."""

    class Parser(Spark.Parser):  # type: ignore[misc,name-defined,valid-type,unused-ignore]
        """Parser that keeps the names and arguments of functions."""

        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _KNOWN
        }
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012


def parse_tokens(tokens: list[Token], source: str) -> list[Any]:
    """Return sqlglot's trees of the statements in ``tokens``.

    Raises:
        SqlglotError, RecursionError, ValueError, OverflowError: sqlglot's grammar does not support them.
    """
    if not _is_compiled():
        return list(SparkAsWritten().parser().parse(tokens, source))
    parser = Spark().parser()
    trees = list(parser.parse(_marked(tokens, parser), source))
    for tree in trees:
        for call in tree.find_all(exp.Anonymous) if tree is not None else ():
            holder = call if isinstance(call.this, str) else call.this  # an identifier, in backticks
            holder.set("this", str(holder.this).removeprefix(_MARK))
    return trees


@lru_cache(1)
def _is_compiled() -> bool:
    """Return whether sqlglot's parsers are machine code (``sqlglot[c]``), from which no class can be derived."""
    try:
        SparkAsWritten().parser()
    except TypeError:
        return True
    return False


def _marked(tokens: list[Token], parser: Any) -> list[Token]:
    """Hide from a parser every function that it would translate: by another name, or by another kind of token."""
    found = []
    for place, token in enumerate(tokens):
        name, kind = token.text.upper(), token.token_type
        is_call = place + 1 < len(tokens) and tokens[place + 1].token_type == TokenType.L_PAREN
        if is_call and _is_function(name, tokens[place - 1] if place else None, parser):
            text, kind = f"{_MARK}{token.text}", kind if kind == TokenType.IDENTIFIER else TokenType.VAR
        elif not is_call and kind in parser.NO_PAREN_FUNCTIONS:
            text, kind = token.text, TokenType.VAR
        else:
            found.append(token)
            continue
        found.append(Token(kind, text, start=token.start, end=token.end, comments=token.comments))
    return found


def _is_function(name: str, before: Token | None, parser: Any) -> bool:
    if name in _KNOWN or name in _WORDS or (before is not None and before.token_type in _ENDS):
        return False
    if name in parser.NO_PAREN_FUNCTION_PARSERS:  # IF
        return False
    return name in parser.FUNCTIONS or name in parser.FUNCTION_PARSERS
