"""Write the moment at which a statement is planned in place of its clock functions.

Spark gives all clock functions of a statement one moment. So does this module, as literals in the statement's text.
From then on the files are chosen by the same moment that the statement shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, LongType, TimestampNTZType, TimestampType

from dbt_zorder.pruning.condition.time_texts import PATTERNS
from dbt_zorder.pruning.plain_sql.catalyst import nodes
from dbt_zorder.pruning.plain_sql.literals import exact_literal
from dbt_zorder.pruning.plain_sql.places import Place, own_place, parts_with
from dbt_zorder.pruning.plain_sql.repeatable import is_subquery
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.jvm import class_named, items, jvm_of
from dbt_zorder.spark.sql import BLANK, NO_CODE, quote_name

_KINDS = {
    "CurrentDate": {"current_date", "curdate"},
    "CurrentTimestamp": {"current_timestamp", "unix_timestamp"},
    "Now": {"now"},
    "LocalTimestamp": {"localtimestamp"},
}
"""Names by which a statement calls each class of Spark's clock functions."""

_NAMES = frozenset().union(*_KINDS.values(), {"current_time"})
_WORD = re.compile(rf"\b(?:{'|'.join(sorted(_NAMES))})\b", re.IGNORECASE)
_TOKEN = re.compile(rf"{NO_CODE}|\b(?P<name>{'|'.join(sorted(_NAMES))})\b", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(rf"(\w+)(?:{BLANK}\({BLANK}\))?", re.DOTALL)
_UNNAMED = ("UnresolvedAlias", "UnresolvedAttribute")


def names_clock(sql: str) -> bool:
    """Return whether a text contains the name of a clock function, be it in a comment."""
    return _WORD.search(sql) is not None


def moment_literals(spark: SparkSession, sql: str, parsed: Any, analyzed: Any) -> dict[Place, str]:
    """Return the text that replaces each clock function of a query; empty if one of them cannot be replaced.

    A clock in a view or in a function's SQL cannot. It would show another moment than those that are replaced.

    Args:
        spark: session that will run the query.
        sql: text of the query.
        parsed: the query as Spark parsed this text.
        analyzed: the same query, analyzed.
    """
    found: dict[Place, str] = {}
    for place, name in _clocks(spark, sql, analyzed):
        if place is None:
            return {}
        found[place] = name
    # a clock that Spark has already evaluated, as in VALUES, is in the text and not in the analyzed plan
    if not found or (_words(sql) != {place.start for place in found} and not _called(sql, parsed) <= set(found)):
        return {}
    literals = _moment(spark)
    texts = {place: literals[name] for place, name in found.items()}
    for place, name in _unnamed_items(sql, parsed, analyzed, texts).items():
        last = max((at for at in texts if at in place), key=lambda at: at.stop)
        rest = Place(last.stop, _after_parentheses(sql, place))
        texts[Place(last.start, rest.stop)] = f"{texts.pop(last)}{rest.text_in(sql)} AS {quote_name(name)}"
    return texts


def _words(sql: str) -> set[int]:
    """Return where a text has names of clock functions, outside its texts and comments as far as it is certain."""
    return {found.start("name") for found in _TOKEN.finditer(sql) if found["name"]}


def _called(sql: str, parsed: Any) -> set[Place | None]:
    """Return where a parsed query calls a function with the name of a clock; each of its expressions needs 1 ms."""
    found: set[Place | None] = set()
    for node, _ in nodes(parsed, with_ctes=True):
        is_table = node.nodeName() == "UnresolvedInlineTable"
        waiting = list(items(node.expressions()))
        while waiting:
            part = waiting.pop()
            kind = part.getClass().getSimpleName()
            # Spark evaluates VALUES at once; any other name without parentheses is a column's
            is_call = kind == "UnresolvedFunction" or (is_table and kind == "UnresolvedAttribute")
            if kind in _KINDS or (is_call and str(part.nameParts().last()).lower() in _NAMES):
                found.add(own_place(sql, part))
            waiting += items(part.children())
    return found


def _clocks(spark: SparkSession, sql: str, analyzed: Any) -> Iterator[tuple[Place | None, str]]:
    """Yield the place and the name of each expression that Spark replaces by a constant when a query runs."""
    current = class_named(jvm_of(spark), PATTERNS).CURRENT_LIKE()
    for part in parts_with(analyzed, current):
        if is_subquery(part) or any(child.containsPattern(current) for child in items(part.children())):
            continue
        place = own_place(sql, part)
        call = _CALL.fullmatch(place.text_in(sql)) if place is not None else None
        name = call[1].lower() if call is not None else ""
        yield (place if name in _KINDS.get(part.getClass().getSimpleName(), ()) else None), name


def _moment(spark: SparkSession) -> dict[str, str]:
    """Return the current moment, as the literal that replaces each clock function."""
    row = collect_arrow(
        spark.sql(
            "SELECT current_date AS d, current_timestamp AS t, CAST(current_timestamp AS TIMESTAMP_NTZ) AS n, "
            "CAST(current_timestamp AS BIGINT) AS s"
        )
    )
    kinds = {"d": DateType(), "t": TimestampType(), "n": TimestampNTZType(), "s": LongType()}
    texts = {name: str(exact_literal(row[name][0], kind)) for name, kind in kinds.items()}
    return {
        **dict.fromkeys(("current_date", "curdate"), texts["d"]),
        **dict.fromkeys(("current_timestamp", "now"), texts["t"]),
        "localtimestamp": texts["n"],
        "unix_timestamp": texts["s"],
    }


def _unnamed_items(sql: str, parsed: Any, analyzed: Any, texts: Mapping[Place, str]) -> dict[Place, str]:
    """Return the items of select lists that contain a clock and get their name from their text, with that name."""
    waiting: dict[Place, str] = {}
    places = set()
    for node, _ in nodes(parsed, with_ctes=True):
        for item in _select_list(node):
            if item.getClass().getSimpleName() not in _UNNAMED:
                continue
            named = item.child() if item.getClass().getSimpleName() == "UnresolvedAlias" else item
            place = own_place(sql, named)
            if place is not None and any(at in place for at in texts):
                places.add(place)
    if not places:
        return {}
    for node, _ in nodes(analyzed):
        for item in _select_list(node):
            if item.getClass().getSimpleName() == "Alias" and own_place(sql, item.child()) in places:
                waiting[own_place(sql, item.child())] = str(item.name())  # type: ignore[index]
    return waiting


def _after_parentheses(sql: str, place: Place) -> int:
    """Return the position after the parentheses around an item."""
    before, stop = sql[: place.start].rstrip(), place.stop
    while before.endswith("(") and (closing := re.compile(r"\s*\)").match(sql, stop)):
        before, stop = before[:-1].rstrip(), closing.end()
    return stop


def _select_list(node: Any) -> Iterator[Any]:
    match node.getClass().getSimpleName():
        case "Project":
            return items(node.projectList())
        case "Aggregate":
            return items(node.aggregateExpressions())
    return iter(())
