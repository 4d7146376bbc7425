"""SQL text for Spark: names and strings in quotes, constants, and what stands between words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_SPECIAL = re.compile(r"[\\'$\x00-\x1f\x7f]")

BLANK = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*\n)*"
"""Pattern of what may stand between two words: blanks and comments."""


def quote_name(*parts: str) -> str:
    """Return a dotted name with every part in backticks: ``quote_name("db", "a b")`` is ```db`.`a b```."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_string(text: str) -> str:
    r"""Return ``text`` as a Spark string literal.

    Backslash and quote are escaped, and every other character that a lexer might take for itself is written as
    ``\uXXXX``; so is the dollar sign, because Spark replaces ``${...}`` anywhere in a statement by a setting's
    value. Spark must run with ``settings.ESCAPED_LITERALS`` off, as it is by default.
    """
    return "'" + _SPECIAL.sub(_escaped, text) + "'"


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return f"\\{char}" if char in "\\'" else f"\\u{ord(char):04x}"


def constant_array(items: Sequence[Any], element: str) -> str:
    """Return a constant SQL array of what JSON holds, None as NULL; Spark parses it once while it optimizes a query.

    Args:
        items: numbers, texts (base64 of binary), or dictionaries of them.
        element: type of an item as DDL.
    """
    return f"from_json({quote_string(json.dumps(items, separators=(',', ':')))}, 'array<{element}>')"


def checked_cast(value: str, kind: str, complaint: str) -> str:
    """Return SQL that casts a value or fails with ``complaint`` and the value; without ANSI a plain cast makes it NULL.

    Args:
        value: SQL of the value.
        kind: type as DDL.
        complaint: what is said before the value.
    """
    cast = f"try_cast({value} AS {kind})"
    raised = f"raise_error(concat({quote_string(complaint)}, CAST({value} AS STRING)))"
    return f"CASE WHEN {cast} IS NULL AND {value} IS NOT NULL THEN CAST({raised} AS {kind}) ELSE {cast} END"


def glob_escape(path: str) -> str:
    """Return a path that Hadoop's globbing takes for itself, whatever characters it holds."""
    return "".join("\\" + char if char in "\\*?[]{}^" else char for char in path)
