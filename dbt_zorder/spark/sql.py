"""Write SQL text for Spark: quoted names and strings, constants, casts and globs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_SPECIAL = re.compile(r"[\\'$\x00-\x1f\x7f]")

BLANK = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*\n)*"
"""Pattern of the text that may separate two words: blanks and comments."""

NO_CODE = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|/\*.*?\*/|--[^\n]*"""
"""Pattern of what contains no word of a statement: a text, a quoted name or a comment; it needs ``re.DOTALL``."""


def quote_name(*parts: str) -> str:
    """Return a dotted name with every part in backticks: ``quote_name("db", "a b")`` is ```db`.`a b```."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_string(text: str) -> str:
    r"""Return ``text`` as a Spark string literal.

    Backslash and quote are escaped. Every other character that a lexer might interpret is written as ``\uXXXX``. So is
    the dollar sign, because Spark replaces ``${...}`` anywhere in a statement by a setting's value. Spark must run with
    ``conf.ESCAPED_LITERALS`` off, as it is by default.
    """
    return "'" + _SPECIAL.sub(_escaped, text) + "'"


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return f"\\{char}" if char in "\\'" else f"\\u{ord(char):04x}"


def constant_array(items: Sequence[Any], element: str) -> str:
    """Return a constant SQL array of JSON values, with None as NULL; Spark parses it once while it optimizes a query.

    Args:
        items: numbers, texts (base64 of binary), or dictionaries of them.
        element: type of an item as DDL.
    """
    return f"from_json({quote_string(json.dumps(items, separators=(',', ':')))}, 'array<{element}>')"


def checked_cast(value: str, kind: str, complaint: str) -> str:
    """Return SQL that casts a value, or fails with ``complaint`` and the value.

    Without ANSI, a plain cast would return NULL instead.

    Args:
        value: SQL of the value.
        kind: type as DDL.
        complaint: text of the error before the value.
    """
    cast = f"try_cast({value} AS {kind})"
    raised = f"raise_error(concat({quote_string(complaint)}, CAST({value} AS STRING)))"
    return f"CASE WHEN {cast} IS NULL AND {value} IS NOT NULL THEN CAST({raised} AS {kind}) ELSE {cast} END"


def glob_escape(path: str) -> str:
    """Return a path that Hadoop's globbing matches literally, whatever characters it contains."""
    return "".join("\\" + char if char in "\\*?[]{}^" else char for char in path)
