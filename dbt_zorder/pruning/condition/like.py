"""Split LIKE patterns into a literal prefix and a tail."""

from __future__ import annotations

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
