"""Answer the aggregates of a whole table from its statistics: ``count(*)``, ``count(c)``, ``min(c)`` and ``max(c)``.

The statement then contains the answers as literals, and a relation of one row in place of the table. So this holds
wherever such a SELECT stands in the text: in a subquery, a CTE, ``CREATE TABLE ... AS`` or ``INSERT``.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from dbt_zorder.pruning.condition.types import Family, family
from dbt_zorder.pruning.files.column_bounds import FileBounds, FileRows, read_bounds, read_rows
from dbt_zorder.pruning.plain_sql.catalyst import (
    Mention,
    Statement,
    cached_parts,
    columns_of,
    plan_statement,
)
from dbt_zorder.pruning.plain_sql.literals import exact_literal
from dbt_zorder.pruning.plain_sql.places import Place, own_place, replace_places
from dbt_zorder.pruning.plain_sql.scan_files import Table
from dbt_zorder.pruning.plans.pins import WHOLE_TABLE_FILES_AT_MOST, Pins, listed_files, pin_leaves
from dbt_zorder.pruning.plans.tree import PlanTrees, below_aliases
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.conf import ESCAPED_LITERALS, IGNORED_FILES, is_on
from dbt_zorder.spark.jvm import items
from dbt_zorder.spark.messages import first_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.footer_schema import cuts_times
from dbt_zorder.stats.store import stats_path

_LOG = logging.getLogger("dbt_zorder")
_CALL = re.compile(r"\b(?:count|min|max)\s*\(", re.IGNORECASE)
_FUNCTIONS = frozenset({"count", "min", "max"})
_EXACT = frozenset({Family.INTEGRAL, Family.DECIMAL, Family.BOOLEAN, Family.DATE, Family.TIMESTAMP})
"""Types whose bounds are values of the file. Bounds of texts may be cut, and floats differ by NaN and the sign of 0."""

_FIRST_DAY = dt.date(1900, 2, 1)
_FIRST_SECOND = (_FIRST_DAY - dt.date(1970, 1, 1)).days * 86_400
"""Day and second from which bounds are exact: older ones may be widened, so that they are valid in two calendars."""

_cut: WeakKeyDictionary[DataFrame, bool] = WeakKeyDictionary()
"""Whether statistics lack microseconds, by their frame."""


@dataclass(frozen=True)
class Answers:
    """A statement with the answers to its aggregates of whole tables.

    Attributes:
        sql: text of the statement.
        reads: name of each table whose aggregates were answered, with its files.
        pins: files of those that the statement reads at another place, too.
    """

    sql: str
    reads: Sequence[tuple[str, Sequence[FileRows]]]
    pins: Pins = field(default_factory=dict)


@dataclass(frozen=True)
class _Selection:
    """A SELECT of aggregates from one table, as parsed.

    Attributes:
        mention: where it names the table.
        calls: places of its aggregate functions, by the number of the item.
        ends: where the items without a name end, by their number.
        count: number of items.
    """

    mention: Mention
    calls: Mapping[Place, int]
    ends: Mapping[int, int]
    count: int


@dataclass(frozen=True)
class _Aggregate:
    """A whole aggregate of one relation, as analysed.

    Attributes:
        relation: relation of the JVM.
        calls: function and column of each aggregate function, by its place; the column of ``count(*)`` is empty.
        names: names of the items.
    """

    relation: Any
    calls: Mapping[Place, tuple[str, str]]
    names: Sequence[str]


def answer_aggregates(spark: SparkSession, statement: Statement, tables: Mapping[Mention, Table]) -> Answers | None:
    """Return a statement with the answers to its aggregates of whole tables; None if it has none. Never raises.

    Args:
        spark: session that will run the statement.
        statement: statement that contains a query.
        tables: tables with statistics that it names.
    """
    if not _CALL.search(statement.sql) or any(is_on(spark, key) for key in (ESCAPED_LITERALS, *IGNORED_FILES)):
        return None
    try:
        return _answers(spark, statement, tables)
    except Exception as exc:  # the tables are read
        _LOG.debug("no aggregate is answered from statistics: %s", first_line(exc))
        return None


def _answers(spark: SparkSession, statement: Statement, tables: Mapping[Mention, Table]) -> Answers | None:
    sql, before = statement.sql, statement.plan
    selections = list(_selections(statement, {mention.start: mention for mention in tables}))
    if not selections:
        return None
    aggregates = {frozenset(one.calls): one for one in _aggregates(sql, before.analyzed())}
    texts: dict[Place, str] = {}
    reads: dict[Mention, tuple[str, Sequence[FileRows]]] = {}
    pins: dict[str, str] = {}
    for one in selections:
        aggregate = aggregates.get(frozenset(one.calls))
        if aggregate is None or len(aggregate.names) != one.count:
            continue
        table = tables[one.mention]
        answer = _Answer(spark, table, aggregate.relation)
        literals = {place: answer.literal(*call) for place, call in aggregate.calls.items()}
        pinned = pin_leaves(aggregate.relation, WHOLE_TABLE_FILES_AT_MOST)
        if None in literals.values() or pinned is None:
            continue
        texts |= {place: literal for place, literal in literals.items() if literal is not None}
        for number, end in one.ends.items():
            texts[Place(end, end)] = f" AS {quote_name(aggregate.names[number])}"
        texts[Place(one.mention.start, one.mention.stop)] = _one_row(one.mention)
        reads[one.mention] = (table.facts.sql, answer.files)
        if any(other.facts.location == table.facts.location for at, other in tables.items() if at != one.mention):
            pins |= pinned[0]
    if not texts:
        return None
    text = replace_places(sql, texts)
    after = plan_statement(spark, text).plan
    if columns_of(before) != columns_of(after) or cached_parts(spark, before) > cached_parts(spark, after):
        return None
    return Answers(text, list(reads.values()), pins)


def _one_row(mention: Mention) -> str:
    return "(SELECT 1)" if mention.is_named else f"(SELECT 1) AS {quote_name(mention.parts[-1])}"


def _selections(statement: Statement, mentions: Mapping[int, Mention]) -> Iterator[_Selection]:
    """Yield each SELECT without clauses behind FROM that may consist of aggregates of one of the tables."""
    sql = statement.sql
    for node, relation in _projections(statement):
        start = relation.origin().startIndex()
        if start.isEmpty() or start.get() not in mentions:
            continue
        calls: dict[Place, int] = {}
        ends: dict[int, int] = {}
        listed = list(items(node.projectList()))
        for number, item in enumerate(listed):
            places = [own_place(sql, call) for call in _calls(item)]
            if None in places:
                break
            calls |= {place: number for place in places if place is not None}
            if places and item.getClass().getSimpleName() == "UnresolvedAlias":
                end = own_place(sql, item.child())
                if end is None:
                    break
                ends[number] = end.stop
        else:
            if calls:
                yield _Selection(mentions[start.get()], calls, ends, len(listed))


def _projections(statement: Statement) -> Iterator[tuple[Any, Any]]:
    """Yield each parsed projection of one relation that is named, with that relation."""
    for plans in statement.parsed_plans:
        for number, node, _ in plans.nodes():
            if node.kind == "Project" and (below := below_aliases(node.children[0])).kind == "UnresolvedRelation":
                yield plans.in_jvm(number, node), plans.in_jvm(number, below)


def _calls(part: Any) -> Iterator[Any]:
    """Yield the outermost calls of aggregate functions in a parsed expression, by their names."""
    if part.getClass().getSimpleName() == "UnresolvedFunction":
        names = [str(name).lower() for name in items(part.nameParts())]
        if len(names) == 1 and names[0] in _FUNCTIONS:
            yield part
            return
    for child in items(part.children()):
        yield from _calls(child)


def _aggregates(sql: str, analyzed: Any) -> Iterator[_Aggregate]:
    """Yield the whole aggregates of one relation, of rows that nothing filters, in which each function is simple."""
    plans = PlanTrees(analyzed)
    for number, whole, _ in plans.nodes():
        if whole.kind != "Aggregate" or (below := below_aliases(whole.children[0])).kind != "LogicalRelation":
            continue
        node, relation = plans.in_jvm(number, whole), plans.in_jvm(number, below)
        if not node.groupingExpressions().isEmpty():
            continue
        listed = list(items(node.aggregateExpressions()))
        calls = [(own_place(sql, part), _call(part)) for item in listed for part in _functions(item)]
        found = {place: call for place, call in calls if place is not None and call is not None}
        if found and len(found) == len(calls):
            yield _Aggregate(relation, found, [str(item.name()) for item in listed])


def _functions(part: Any) -> Iterator[Any]:
    if part.getClass().getSimpleName() == "AggregateExpression":
        yield part
    else:
        for child in items(part.children()):
            yield from _functions(child)


def _call(part: Any) -> tuple[str, str] | None:
    """Return function and column of an aggregate function; None if it is of another kind."""
    function = part.aggregateFunction()
    kind = str(function.getClass().getSimpleName()).lower()
    arguments = list(items(function.children()))
    if kind not in _FUNCTIONS or len(arguments) != 1 or part.isDistinct() or part.filter().isDefined():
        return None
    argument = arguments[0]
    match argument.getClass().getSimpleName():
        case "AttributeReference":
            return kind, str(argument.name())
        case "Literal" if kind == "count" and argument.value() is not None:
            return kind, ""
    return None


class _Answer:
    """Answers to the aggregates of one relation, whose files must be exactly those in the table's statistics."""

    def __init__(self, spark: SparkSession, table: Table, relation: Any) -> None:
        self._spark = spark
        self._table = table
        self._listed = listed_files(spark, relation)
        self.files = read_rows(table.stats)

    def literal(self, function: str, column: str) -> str | None:
        """Return the result of an aggregate function as SQL; None if the statistics do not show it exactly.

        Args:
            function: ``count``, ``min`` or ``max``.
            column: name of the column; empty for all rows.
        """
        if self._listed is None or not are_all(self.files, self._listed):
            return None
        if not column:
            return f"CAST({sum(one.rows for one in self.files)} AS BIGINT)"
        names = Names(self._table.frame.schema, case_sensitive(self._spark))
        found = names.resolve([column])
        if not isinstance(found, Column) or self._table.columns.get(found.path[0]) != found:
            return None
        bounds = read_bounds(self._table.stats, found).files
        if not are_all(bounds, self._listed):
            return None
        value = result(function, bounds)
        if function == "count":
            return f"CAST({value} AS BIGINT)"
        if family(found.data_type) not in _EXACT or (self._is_time(found) and self._cuts_times):
            return None
        literal = _literal(value, found.data_type)
        # this may be NULL by its type, as the function may
        return None if literal is None else f"CASE WHEN 1 = 1 THEN {literal} END"

    @staticmethod
    def _is_time(column: Column) -> bool:
        return family(column.data_type) is Family.TIMESTAMP

    @property
    def _cuts_times(self) -> bool:
        """Return whether the statistics may lack microseconds; their files are opened once for each frame."""
        frame = self._table.stats.frame
        assert frame is not None
        if frame not in _cut:
            _cut[frame] = cuts_times(self._spark, stats_path(self._table.facts.location))
        return _cut[frame]


def are_all(files: Sequence[FileRows], listed: Mapping[str, int]) -> bool:
    """Return whether files in statistics are exactly those that Spark would read.

    Args:
        files: files in the statistics.
        listed: size of each file that Spark has listed, by path.
    """
    return {one.path: one.size for one in files} == listed


def result(function: str, files: Sequence[FileBounds]) -> Any:
    """Return the result of ``count``, ``min`` or ``max`` of a column over files with exact bounds."""
    if function == "count":
        return sum(one.rows - one.nulls for one in files)
    ends = [one.low if function == "min" else one.high for one in files if one.low is not None]
    if not ends:
        return None
    return min(ends) if function == "min" else max(ends)


def _literal(value: Any, data_type: t.DataType) -> str | None:
    """Return a bound as SQL; None if the value in the file may be another one.

    Args:
        value: the bound; a time as seconds since 1970.
        data_type: type of the column.
    """
    match data_type:
        case t.DateType() if value is not None and value < _FIRST_DAY:
            return None
        case t.TimestampType() if value is not None:
            micros = int(value * 1_000_000)
            return None if value < _FIRST_SECOND else exact_literal(pa.scalar(micros, pa.timestamp("us")), data_type)
    return exact_literal(pa.scalar(value), data_type)
