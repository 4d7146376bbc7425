"""Split patterns of LIKE and RLIKE into a literal prefix and a tail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

DEFAULT_ESCAPE = "\\"
REPLACEMENT = "\ufffd"
"""Spark replaces invalid UTF-8 by this character before it matches a pattern, so bounds cannot decide such a match."""


class Tail(Enum):
    """Kind of the pattern's remainder after the literal prefix."""

    NOTHING = "the pattern is a literal"
    ANYTHING = "only %"
    OTHER = "other wildcards or text"


@dataclass(frozen=True)
class Pattern:
    """LIKE pattern as ``prefix`` and the kind of its ``tail``."""

    prefix: str
    tail: Tail


def split_pattern(pattern: str, escape: str | None = None) -> Pattern | None:
    """Return the parts of a LIKE pattern, or None where Spark would raise an error.

    The escape character may only precede ``_``, ``%`` and itself.
    """
    mark = DEFAULT_ESCAPE if escape is None else escape
    if len(mark) != 1:
        return None
    prefix: list[str] = []
    tail = ""
    wild = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == mark:
            position += 1
            if position == len(pattern) or pattern[position] not in {"_", "%", mark}:
                return None
            char = pattern[position]
            if wild:
                tail += "x"
            else:
                prefix.append(char)
        elif char in "_%" or wild:
            wild = True
            tail += char
        else:
            prefix.append(char)
        position += 1
    kind = Tail.NOTHING if not tail else Tail.ANYTHING if set(tail) == {"%"} else Tail.OTHER
    return Pattern("".join(prefix), kind)


_REGEX_SPECIAL = frozenset("\\^$.|?*+()[]{}")
_REGEX_OPTIONAL = frozenset("?*{")


def split_regex(pattern: str) -> Pattern | None:
    """Return the literal text with which every match of a Java pattern begins, or None if there is none.

    The pattern must be anchored by ``^`` and have no alternatives. The tail is ``ANYTHING`` if each text with the
    prefix matches.
    """
    if not pattern.startswith("^") or "|" in pattern or not _is_regex(pattern):
        return None
    prefix: list[str] = []
    position = 1
    while position < len(pattern):
        char = pattern[position]
        if char == "\\" and position + 1 < len(pattern) and pattern[position + 1] in _REGEX_SPECIAL:
            position += 1
            char = pattern[position]
        elif char in _REGEX_SPECIAL:
            break
        prefix.append(char)
        position += 1
    rest = pattern[position:]
    if rest[:1] in _REGEX_OPTIONAL:
        prefix = prefix[:-1]
    return Pattern("".join(prefix), Tail.ANYTHING if rest in ("", ".*") else Tail.OTHER) if prefix else None


def _is_regex(pattern: str) -> bool:
    """Return whether a pattern is well-formed, so that a skipped file hides no error of Spark."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
