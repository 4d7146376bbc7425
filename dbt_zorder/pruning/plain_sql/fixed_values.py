"""Write values that are fixed once a statement into its text: its moment, and the results of its scalar subqueries.

Spark evaluates both when a statement runs, after its files are listed. As literals they choose the files. The statement
then contains the same literals, so its rows and the choice of its files cannot differ.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.pruning.condition.time_texts import PATTERNS
from dbt_zorder.pruning.files.table_facts import TableFacts
from dbt_zorder.pruning.plain_sql.catalyst import (
    Statement,
    UnfitError,
    cached_parts,
    columns_of,
    nodes,
    plan_query,
    plan_statement,
    table_name,
)
from dbt_zorder.pruning.plain_sql.clock import moment_literals, names_clock
from dbt_zorder.pruning.plain_sql.literals import exact_literal, type_name
from dbt_zorder.pruning.plain_sql.places import Place, own_place, parts_with, replace_places
from dbt_zorder.pruning.plain_sql.repeatable import day_of
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.conf import ESCAPED_LITERALS, is_on
from dbt_zorder.spark.jvm import class_named, frame_of_plan, items, jvm_of, sql_parser
from dbt_zorder.spark.messages import first_line

_LOG = logging.getLogger("dbt_zorder")
_WITH_CTE = "org.apache.spark.sql.catalyst.plans.logical.WithCTE"
_ANSWERS_AT_MOST = 20
"""Maximum number of subqueries that are run for one statement."""

Query = Callable[[SparkSession, str], DataFrame]
"""Function that returns the rows of a query from as few files as possible."""


@dataclass(frozen=True)
class Fixed:
    """A statement whose text contains values that are fixed once a statement.

    Attributes:
        sql: text of the statement; the original text if no part of it could be replaced.
        has_answers: whether a subquery ran, and need not run again in this text.
    """

    sql: str
    has_answers: bool = False


@dataclass(frozen=True)
class _Answer:
    """A subquery that ran.

    Attributes:
        plan: its analyzed plan.
        literal: its result as SQL.
        cached: number of its parts that came from Spark's cache.
    """

    plan: Any
    literal: str
    cached: int


def fix_values(spark: SparkSession, statement: Statement, tables: Collection[TableFacts], query: Query) -> Fixed:
    """Return a statement with literals in place of its clock functions and of subqueries that select rows of tables.

    A part that cannot be replaced with certainty stays as it is; the text is unchanged if all of them do. The columns
    of the statement are the same, by name and type.

    Args:
        spark: session that will run the statement.
        statement: statement that contains a query.
        tables: tables whose files can be excluded.
        query: function that runs subqueries.
    """
    if is_on(spark, ESCAPED_LITERALS):
        return Fixed(statement.sql)
    try:
        return _fixed(spark, statement, tables, query)
    except Exception as exc:  # the statement is planned as it is, and Spark reports its errors
        _LOG.debug("no value is fixed before the statement runs: %s", first_line(exc))
        return Fixed(statement.sql)


def _fixed(spark: SparkSession, statement: Statement, tables: Collection[TableFacts], query: Query) -> Fixed:
    if names_clock(statement.sql):
        texts = moment_literals(spark, statement.sql, statement.parsed, statement.plan.analyzed())
        statement = _replaced(spark, statement, texts, 0) or statement
    found = _subqueries(spark, statement, tables)
    if not found or day_of(spark, statement.plan.analyzed(), statement.sql) is not None:
        return Fixed(statement.sql)
    answers: list[_Answer] = []
    texts = {}
    for place, subquery in found.items():
        answer = _answer(spark, statement, place, subquery, answers, query)
        if answer is not None:
            texts[place] = f"({answer.literal})"
    fixed = _replaced(spark, statement, texts, sum(answer.cached for answer in answers))
    return Fixed(statement.sql) if fixed is None else Fixed(fixed.sql, has_answers=True)


def _replaced(spark: SparkSession, before: Statement, texts: dict[Place, str], cached: int) -> Statement | None:
    """Return a statement with other texts at places; None if it would be another one than before.

    Args:
        spark: session that will run the statement.
        before: statement whose text has these places.
        texts: texts by their places.
        cached: number of parts in Spark's cache that the texts replace.
    """
    if not texts:
        return None
    try:
        after = plan_statement(spark, replace_places(before.sql, texts))
        same = columns_of(after.plan) == columns_of(before.plan)
    except Exception as exc:  # Spark does not accept a literal there
        _LOG.debug("a value stays unknown: %s", first_line(exc))
        return None
    kept = cached_parts(spark, before.plan) <= cached_parts(spark, after.plan) + cached
    return after if same and kept else None


def _subqueries(spark: SparkSession, statement: Statement, tables: Collection[TableFacts]) -> dict[Place, Any]:
    """Return the subqueries that select rows of a table and can run alone, by their places in the text."""
    patterns = class_named(jvm_of(spark), PATTERNS)
    scalar = patterns.SCALAR_SUBQUERY()
    analyzed = statement.plan.analyzed()
    if not analyzed.containsPattern(scalar):
        return {}
    asked = _asked(statement, tables, scalar)
    if not asked:
        return {}
    found: dict[Place, Any] = {}
    others: set[Place] = set()
    for part in parts_with(analyzed, scalar):
        place = _place(statement, part)
        if place is None:
            others.update(_coerced_texts(statement, part))
        elif not part.outerAttrs().isEmpty():
            others.add(place)
        elif place in asked and re.fullmatch(r"\(.*\)", place.text_in(statement.sql), re.DOTALL):
            found[place] = part
    alone = {place: part for place, part in found.items() if place not in others}
    outermost = {place: part for place, part in alone.items() if not any(place in at and place != at for at in alone)}
    return outermost if len(outermost) <= _ANSWERS_AT_MOST else {}


def _place(statement: Statement, part: Any) -> Place | None:
    return own_place(statement.sql, part) if part.getClass().getSimpleName() == "ScalarSubquery" else None


def _coerced_texts(statement: Statement, part: Any) -> Iterator[Place]:
    """Yield the subqueries directly in an expression whose texts Spark casts, or casts a value for.

    Spark casts the text of a literal by more rules than that of a query, such as 'epoch' to a date.
    """
    inner = list(items(part.children()))
    casts = [one for one in (part, *inner) if one.getClass().getSimpleName() == "Cast"]
    for child in inner if casts else ():
        place = _place(statement, child)
        if place is not None and str(child.dataType().typeName()) == "string":
            yield place


def _asked(statement: Statement, tables: Collection[TableFacts], scalar: Any) -> set[Place]:
    """Return the places of the subqueries that tests directly above one of the tables use, in the optimized plan."""
    names = {table.qualifiers[0] for table in tables if table.qualifiers}
    found: set[Place] = set()
    for node, parent in nodes(statement.plan.optimizedPlan()):
        is_filter = parent is not None and parent.nodeName() == "Filter" and parent.condition().containsPattern(scalar)
        if not is_filter or node.getClass().getSimpleName() != "LogicalRelation" or table_name(node) not in names:
            continue
        waiting = [parent.condition()]  # type: ignore[union-attr]
        while waiting:
            part = waiting.pop()
            waiting += [child for child in items(part.children()) if child.containsPattern(scalar)]
            place = _place(statement, part)
            if place is not None:
                found.add(place)
    return found


def _answer(
    spark: SparkSession, statement: Statement, place: Place, subquery: Any, known: list[_Answer], query: Query
) -> _Answer | None:
    """Return the result of a subquery, and add it to those that are known; None if it cannot be written exactly."""
    plan = subquery.plan()
    for answer in known:
        if plan.sameResult(answer.plan):
            return answer
    try:
        rows = _rows(spark, statement, place, plan, query)
        kind = rows.schema.fields[0].dataType
        if type_name(kind) is None:
            return None
        values = collect_arrow(rows.toDF("value").limit(2))["value"]
        if len(values) > 1:  # an error, which Spark reports
            return None
        literal = exact_literal(values[0], kind) if len(values) else f"CAST(NULL AS {type_name(kind)})"
        if literal is None:
            return None
        answer = _Answer(plan, literal, cached_parts(spark, rows._jdf.queryExecution()))
    except Exception as exc:  # an error that Spark reports again where the statement gets to it
        _LOG.debug("a subquery is not answered before its statement: %s", first_line(exc))
        return None
    _LOG.debug("%s is %s", place.text_in(statement.sql), literal)
    known.append(answer)
    return answer


def _rows(spark: SparkSession, statement: Statement, place: Place, plan: Any, query: Query) -> DataFrame:
    """Return the rows of a subquery: those of its plan, or of its text if that means the same and may read less."""
    jvm = jvm_of(spark)
    patterns = class_named(jvm, PATTERNS)
    is_nested = bool(plan.containsPattern(patterns.OUTER_REFERENCE()))  # a subquery in it is correlated
    if plan.containsPattern(patterns.CTE()) and not is_nested:
        (definitions,) = [node for node, _ in nodes(statement.plan.analyzed()) if node.nodeName() == "WithCTE"]
        plan = class_named(jvm, _WITH_CTE)(plan, definitions.cteDefs())
    elif is_nested or any(node.nodeName() == "Filter" for node, _ in nodes(plan)):
        text = place.text_in(statement.sql)[1:-1]
        if plan_query(spark, sql_parser(spark).parsePlan(text)).analyzed().sameResult(plan):
            return query(spark, text)
        if is_nested:
            msg = "it may depend on the rows around it"
            raise UnfitError(msg)
    return frame_of_plan(spark, plan)
