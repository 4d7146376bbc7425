"""Whether a statement means the same when it runs as when its files are chosen, and what its own text may hide.

Spark's optimizer has worked out all constants by the time that it tells what a table is asked for: nothing in
``DATE '2026-11-25'`` says that it was ``current_date()``. So it is the analyzed plan that is looked at, with the views
in it.
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
"""Aggregates that Spark calls not deterministic because rows come in any order, as they do without pruning."""

_RAW = re.compile(r"""\br['"]""", re.IGNORECASE)
"""Begins a text in which a backslash is one, of whose end sqlglot may think otherwise."""

_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)


def check_text(sql: str) -> None:
    """Find out whether a statement names what it would no longer see of a table behind a subquery.

    Raises:
        UnfitError: it names the files of rows.
    """
    if "_metadata" in sql.lower():
        msg = "it asks for _metadata itself"
        raise UnfitError(msg)


def names_whole(sql: str, table: str) -> bool:
    """Tell whether a column or a hint names a table by its schema, as ``db.t.c``: behind a subquery it is but ``t``.

    Args:
        sql: the statement.
        table: the last part of the table's name.
    """
    name = rf"`?{re.escape(table)}`?"
    if any(re.search(rf"\.\s*{name}(?!\w)", hint[1], re.IGNORECASE) for hint in _HINT.finditer(sql)):
        return True
    if not re.search(rf"\.{BLANK}{name}{BLANK}\.", sql, re.IGNORECASE | re.DOTALL):
        return False
    # dbt's own comment before each statement names the project, which may be called as the table is
    words = _words(sql)
    if words is None:
        return True
    return any(
        one == next_but_one == "." and word.lower() == table.lower()
        for one, word, next_but_one in zip(words, words[1:], words[2:], strict=False)
    )


def _words(sql: str) -> list[str] | None:
    """Return the words of a statement without comments; None if they are not known for certain."""
    if _RAW.search(sql):
        return None
    try:
        tokens = sqlglot.tokenize(sql, read="spark")
    except Exception:  # a form that sqlglot does not know
        return None
    return ["''" if token.token_type is TokenType.STRING else token.text for token in tokens]


def day_of(spark: SparkSession, analyzed: Any, sql: str) -> str | None:
    """Return the day by which files are chosen, as SQL, where a statement asks for the day; None if it asks for none.

    Args:
        spark: the session.
        analyzed: the statement's plan.
        sql: its text.

    Raises:
        UnfitError: what it gives depends on chance, on which rows are read together, on the moment, or on a variable.
    """
    session: Any = spark._jsparkSession
    has_variables = not spark.version.startswith("3.")  # which has none
    if has_variables and not session.sessionState().catalogManager().tempVariableManager().isEmpty():
        msg = "the session has variables, which may be set before it runs"
        raise UnfitError(msg)
    if not analyzed.deterministic():
        for name in _of_chance(analyzed):
            if name not in _BY_ORDER:
                msg = f"what {name} gives depends on which rows are read"
                raise UnfitError(msg)
    asked = set(_clocks(spark, analyzed))
    if not asked <= {"CurrentDate"} or has_moment(spark, analyzed, sql):
        msg = f"it depends on the moment, or on the session: {', '.join(sorted(asked)) or 'by a text'}"
        raise UnfitError(msg)
    return today(spark) if asked else None


def today(spark: SparkSession) -> str:
    """Return the day in the session's time zone, as SQL."""
    return f"DATE '{spark.sql('SELECT CAST(current_date() AS STRING)').collect()[0][0]}'"


def _of_chance(plan: Any) -> Iterator[str]:
    """Yield the classes of those expressions that are not deterministic by themselves."""
    return _origins(plan, lambda part: not part.deterministic())


def _origins(plan: Any, has_it: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the classes of the expressions by which others, and a plan, have what a test looks for."""
    waiting = [part for node, _ in nodes(plan) for part in items(node.expressions()) if has_it(part)]
    while waiting:
        part = waiting.pop()
        inner = [child for child in items(part.children()) if has_it(child)]
        waiting += inner
        if not inner and not _is_subquery(part):
            yield str(part.getClass().getSimpleName())


def _is_subquery(part: Any) -> bool:
    """Tell whether an expression is a query, whose own expressions are looked at as such."""
    return "Subquery" in part.getClass().getSimpleName() or part.getClass().getSimpleName() in ("Exists", "ListQuery")


def _clocks(spark: SparkSession, plan: Any) -> Iterator[str]:
    """Yield the classes of those expressions that ask for the moment, the user or the place."""
    current = class_named(jvm_of(spark), PATTERNS).CURRENT_LIKE()
    return _origins(plan, lambda part: part.containsPattern(current)) if plan.containsPattern(current) else iter(())
