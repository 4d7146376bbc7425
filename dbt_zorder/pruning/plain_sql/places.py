"""Find where the text of a statement contains an expression of its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_zorder.pruning.plain_sql.catalyst import nodes
from dbt_zorder.spark.jvm import items


@dataclass(frozen=True)
class Place:
    """A range of a statement's text.

    Attributes:
        start, stop: positions of its first character and after its last.
    """

    start: int
    stop: int

    def __contains__(self, other: Place) -> bool:
        """Return whether another place lies in this one, or is this one."""
        return self.start <= other.start and other.stop <= self.stop

    def text_in(self, sql: str) -> str:
        """Return the text at this place."""
        return sql[self.start : self.stop]


def replace_places(sql: str, texts: Mapping[Place, str]) -> str:
    """Return a text with other texts at places that do not overlap."""
    for place in sorted(texts, key=lambda place: place.start, reverse=True):
        sql = f"{sql[: place.start]}{texts[place]}{sql[place.stop :]}"
    return sql


def own_place(sql: str, part: Any) -> Place | None:
    """Return where a statement contains an expression; None if a view or a function's SQL contains it."""
    origin = part.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if text.isEmpty() or start.isEmpty() or stop.isEmpty() or origin.objectType().isDefined() or text.get() != sql:
        return None
    return Place(start.get(), stop.get() + 1)


def parts_with(plan: Any, pattern: Any) -> Iterator[Any]:
    """Yield each expression in a plan that is of a pattern or contains an expression that is."""
    for node, _ in nodes(plan):
        waiting = [part for part in items(node.expressions()) if part.containsPattern(pattern)]
        while waiting:
            part = waiting.pop()
            yield part
            waiting += [child for child in items(part.children()) if child.containsPattern(pattern)]
