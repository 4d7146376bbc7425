"""Check that a statement means the same when it runs as when its files are chosen, and that its text is complete.

An optimized plan contains only the values of constants: nothing in ``DATE '2026-11-25'`` shows that it was
``current_date()``. So these checks inspect the analyzed plan, including its views.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import sqlglot
from pyspark.sql import SparkSession
from sqlglot.tokens import TokenType  # type: ignore[attr-defined,unused-ignore]

from dbt_zorder.pruning.condition.time_texts import PATTERNS, has_moment
from dbt_zorder.pruning.plain_sql.catalyst import UnfitError, nodes
from dbt_zorder.spark.jvm import class_named, items, jvm_of
from dbt_zorder.spark.sql import BLANK

_BY_ORDER = frozenset({"AnyValue", "CollectList", "CollectSet", "First", "Last", "ListAgg", "Mode"})
"""Aggregates that Spark calls nondeterministic only because rows arrive in any order, as they do without pruning."""

_RAW = re.compile(r"""\br['"]""", re.IGNORECASE)
"""Start of a raw string, in which a backslash is literal; sqlglot may find its end elsewhere."""

_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)


def check_text(sql: str) -> None:
    """Raise if a statement uses a feature of a table that a subquery around the table would hide.

    Raises:
        UnfitError: the statement names the files of rows.
    """
    if "_metadata" in sql.lower():
        msg = "it asks for _metadata itself"
        raise UnfitError(msg)


def is_qualified(sql: str, table: str) -> bool:
    """Return whether a column or a hint qualifies a table by its schema, as ``db.t.c``; a subquery can only be ``t``.

    Args:
        sql: statement to search.
        table: last part of the table's name.
    """
    name = rf"`?{re.escape(table)}`?"
    if any(re.search(rf"\.\s*{name}(?!\w)", hint[1], re.IGNORECASE) for hint in _HINT.finditer(sql)):
        return True
    if not re.search(rf"\.{BLANK}{name}{BLANK}\.", sql, re.IGNORECASE | re.DOTALL):
        return False
    # dbt's own comment before each statement names the project, which may have the table's name
    words = _words(sql)
    if words is None:
        return True
    return any(
        one == next_but_one == "." and word.lower() == table.lower()
        for one, word, next_but_one in zip(words, words[1:], words[2:], strict=False)
    )


def _words(sql: str) -> list[str] | None:
    """Return the words of a statement without comments; None if they are uncertain."""
    if _RAW.search(sql):
        return None
    try:
        tokens = sqlglot.tokenize(sql, read="spark")
    except Exception:  # sqlglot does not support this form
        return None
    return ["''" if token.token_type is TokenType.STRING else token.text for token in tokens]


def day_of(spark: SparkSession, analyzed: Any, sql: str) -> str | None:
    """Return the day for which files are chosen, as SQL; None if the statement does not use the current day.

    Args:
        spark: session that will run the statement.
        analyzed: the statement's analyzed plan.
        sql: the statement's text.

    Raises:
        UnfitError: the result depends on chance, on which rows are read together, on the moment, or on a variable.
    """
    session: Any = spark._jsparkSession
    has_variables = not spark.version.startswith("3.")  # Spark 3 has no variables
    if has_variables and not session.sessionState().catalogManager().tempVariableManager().isEmpty():
        msg = "the session has variables, which may be set before it runs"
        raise UnfitError(msg)
    if not analyzed.deterministic():
        for name in _nondeterministic(analyzed):
            if name not in _BY_ORDER:
                msg = f"what {name} gives depends on which rows are read"
                raise UnfitError(msg)
    asked = set(_clocks(spark, analyzed))
    if not asked <= {"CurrentDate"} or has_moment(spark, analyzed, sql):
        msg = f"it depends on the moment, or on the session: {', '.join(sorted(asked)) or 'by a text'}"
        raise UnfitError(msg)
    return today(spark) if asked else None


def today(spark: SparkSession) -> str:
    """Return the current day in the session's time zone, as SQL."""
    return f"DATE '{spark.sql('SELECT CAST(current_date() AS STRING)').collect()[0][0]}'"


def _nondeterministic(plan: Any) -> Iterator[str]:
    """Yield the classes of the expressions that are nondeterministic by themselves."""
    return _origins(plan, lambda part: not part.deterministic())


def _origins(plan: Any, has_it: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the classes of the innermost expressions in a plan that satisfy a test."""
    waiting = [part for node, _ in nodes(plan) for part in items(node.expressions()) if has_it(part)]
    while waiting:
        part = waiting.pop()
        inner = [child for child in items(part.children()) if has_it(child)]
        waiting += inner
        if not inner and not is_subquery(part):
            yield str(part.getClass().getSimpleName())


def is_subquery(part: Any) -> bool:
    """Return whether an expression is a subquery, whose own expressions ``nodes`` visits."""
    return "Subquery" in part.getClass().getSimpleName() or part.getClass().getSimpleName() in ("Exists", "ListQuery")


def _clocks(spark: SparkSession, plan: Any) -> Iterator[str]:
    """Yield the classes of the expressions that read the clock, the user or the current catalog and schema."""
    current = class_named(jvm_of(spark), PATTERNS).CURRENT_LIKE()
    return _origins(plan, lambda part: part.containsPattern(current)) if plan.containsPattern(current) else iter(())
