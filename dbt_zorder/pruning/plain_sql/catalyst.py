"""Inspect Spark's plans of a query: where its text names a table, and which rows of each table it uses.

Spark's optimizer pushes every test on a single table down to that table, through joins, subqueries, CTEs and views. It
never pushes a test past a barrier, such as the outer side of a join or a LIMIT. So the filter directly above a table
states what every row that matters must pass. We need not derive it again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.pruning.plans.tree import METADATA, PlanTrees
from dbt_zorder.spark.columns import all_columns, split_name
from dbt_zorder.spark.jvm import class_named, frame_of_plan, items, jvm_of, sql_parser
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import plain_columns

_KEEP_ROWS = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect", "InsertIntoStatement"})
"""Statements that run a query once and keep its rows. A view, in contrast, would keep the chosen files."""

_NOT_QUERIES = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
)
_PLANS = "org.apache.spark.sql.catalyst.plans.QueryPlan"
_COLUMNS = "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq"
_MODE = "org.apache.spark.sql.execution.CommandExecutionMode"
_NODES_AT_MOST = 2_000
"""Maximum number of plan nodes to inspect; each needs about 0.3 ms."""

_MARKS = 7_654_321_000
_MARK = re.compile(rf"_metadata`?\.`?file_size`? = -({_MARKS // 1000}\d{{3}})L")
_MARK_ALONE = re.compile(rf"\(NOT \([^()']*{_MARK.pattern}\)\)")
MENTIONS_AT_MOST = 100
_ORIGIN = re.compile(r"Origin\((?:[^,]*,){2}Some\((?P<start>\d+)\),Some\((?P<stop>\d+)\)")
"""Text of an expression's origin: line and position in it, first and last index in the text of the statement."""

_SUBQUERY = "subquery("
"""Text that stands for a subquery in the SQL of an expression."""


@dataclass(frozen=True)
class Mention:
    """A position in the text of a statement where a relation is named.

    Attributes:
        parts: parts of the name, without backticks.
        start, stop: range of the name in the text; ``stop`` is the position after it.
        is_named: whether an alias follows.
        stays: whether the context forbids a subquery: the name has options, or a limit by TABLESAMPLE.
    """

    parts: tuple[str, ...]
    start: int
    stop: int
    is_named: bool = False
    stays: bool = False


@dataclass(frozen=True)
class Scan:
    """A read of a table in a query that Spark has optimized.

    Attributes:
        relation: leaf of Spark's plan.
        tests: tests that its rows must all pass; empty if all rows are used.
    """

    relation: Any
    tests: tuple[Any, ...]

    def texts(self) -> list[str]:
        """Return each test as SQL over the table's bare columns.

        Tests on a subquery are left out, and so are tests that only check for NULL. An inner join adds NULL checks of
        its columns, which exclude next to no file.
        """
        return [
            text
            for test in self.tests
            if not _is_null_check(test) and _SUBQUERY not in (text := _without_qualifiers(test)).lower()
        ]


@dataclass(frozen=True)
class Statement:
    """A statement and its plan.

    Attributes:
        sql: text of the statement.
        parsed: the query in it.
        plan: Spark's execution of the query.
    """

    sql: str
    parsed: Any
    plan: Any

    @cached_property
    def parsed_plans(self) -> Sequence[PlanTrees]:
        """Return the parsed plans of the query and of its CTEs."""
        found: list[PlanTrees] = []
        waiting = [self.parsed]
        while waiting:
            plans = PlanTrees(waiting.pop())
            found.append(plans)
            for number, node, _ in plans.nodes():
                if node.kind == "UnresolvedWith":
                    waiting += items(plans.in_jvm(number, node).innerChildren())
        return found


class UnfitError(Exception):
    """A query whose plan does not show what it reads; the message says why."""


def find_query(spark: SparkSession, parsed: Any) -> Any | None:
    """Return the query that a parsed statement is, or whose rows it keeps; None if there is none."""
    if parsed.getClass().getSimpleName() in _KEEP_ROWS:
        return parsed.query()
    if parsed.getClass().getSimpleName() == "InsertIntoDir":
        return parsed.child()
    loader = class_named(jvm_of(spark), "py4j.reflection.TypeUtil")
    return None if any(loader.isInstanceOf(kind, parsed) for kind in _NOT_QUERIES) else parsed


def plan_query(spark: SparkSession, query: Any) -> Any:
    """Return Spark's execution of a parsed query; nothing runs before its rows are requested."""
    session: Any = spark._jsparkSession
    return session.sessionState().executePlan(query, class_named(jvm_of(spark), _MODE).SKIP())


def plan_statement(spark: SparkSession, sql: str) -> Statement:
    """Return a statement that contains a query, with its plan."""
    parsed = find_query(spark, sql_parser(spark).parsePlan(sql))
    return Statement(sql, parsed, plan_query(spark, parsed))


def columns_of(plan: Any) -> Any:
    """Return the columns of Spark's execution of a query, without the mark that their names are not written in it."""
    return json.loads(
        plan.analyzed().schema().json(),
        object_hook=lambda item: {key: value for key, value in item.items() if key != "__autoGeneratedAlias"},
    )


def find_mentions(statement: Statement) -> list[Mention]:
    """Return where a statement's query names relations other than its own CTEs, in the order of the text.

    Raises:
        UnfitError: the query samples rows.
    """
    found: set[Mention] = set()
    own: set[str] = set()
    for plans in statement.parsed_plans:
        leaves = [iter(items(root.collectLeaves())) for root in plans.roots]
        for number, node, parent in plans.nodes():
            leaf = None if node.children else next(leaves[number])
            if node.kind == "UnresolvedWith":
                own.update(cte.alias().lower() for cte in items(plans.in_jvm(number, node).innerChildren()))
            elif node.kind == "Sample":
                msg = "it reads a sample, which changes when other rows are read"
                raise UnfitError(msg)
            elif node.kind == "UnresolvedRelation":
                found.update(_mention(leaf, "" if parent is None else parent.kind))
    free = [mention for mention in found if len(mention.parts) > 1 or mention.parts[0].lower() not in own]
    return sorted(free, key=lambda mention: mention.start)


def _mention(relation: Any, above: str) -> Iterator[Mention]:
    """Yield the mention that an unresolved relation is, by the kind of the node above it; none without a position."""
    origin = _ORIGIN.match(str(relation.origin().toString()))
    if origin is not None:
        parts = tuple(split_name(str(relation.tableName())))
        is_named = above in ("SubqueryAlias", "UnresolvedSubqueryColumnAliases")
        stays = above in ("GlobalLimit", "LocalLimit") or not relation.options().isEmpty()
        yield Mention(parts, int(origin["start"]), int(origin["stop"]) + 1, is_named, stays)


def cached_parts(spark: SparkSession, execution: Any) -> int:
    """Return how many parts of a query Spark has in its cache."""
    session: Any = spark._jsparkSession
    if session.sharedState().cacheManager().isEmpty():
        return 0
    parts = execution.withCachedData()
    return sum(node.getClass().getSimpleName() == "InMemoryRelation" for node, _ in nodes(parts))


def mark(number: int) -> str:
    """Return a test that all rows of a file pass, which identifies a mention in a plan."""
    return f"{METADATA}.file_size <> -{_MARKS + number}L"


def find_scans(plans: PlanTrees) -> dict[int, list[Scan]]:
    """Return the reads of each marked mention in an optimized query.

    A mention has no read if none of its rows is used, and several if it is in a CTE.

    Raises:
        UnfitError: the plan is too large.
    """
    found: dict[int, list[Scan]] = defaultdict(list)
    for place, (root, node, parent) in enumerate(plans.nodes()):
        if place >= _NODES_AT_MOST:
            raise _too_large()
        if node.kind != "LogicalRelation" or parent is None or parent.kind != "Filter":
            continue
        if not any(test.refers_to(METADATA) for test in parent.expressions("condition")):
            continue
        test_of = plans.in_jvm(root, parent)
        tests: list[Any] = []
        alone, inside = set[int](), set[int]()
        for test in _conjuncts(test_of.condition()):
            if not _reads_metadata(test):
                tests += [test] if test.deterministic() else []
                continue
            numbers = {int(number) - _MARKS for number in _MARK.findall(str(test.sql()))}
            (alone if _MARK_ALONE.fullmatch(str(test.sql())) else inside).update(numbers)
        for number in alone | inside:
            # an optimizer rule may merge the marks of several mentions into one test, which hides the tests of each
            found[number].append(Scan(test_of.child(), () if inside else tuple(tests)))
    return dict(found)


def table_name(relation: Any) -> tuple[str, ...]:
    """Return the full name of the table that a relation reads; empty if no catalog has it."""
    if relation.catalogTable().isEmpty():
        return ()
    found = relation.catalogTable().get().identifier()
    parts = (found.catalog(), found.database())
    return (*(str(part.get()) for part in parts if part.isDefined()), str(found.table()))


def find_reads(plans: PlanTrees, tables: Mapping[tuple[str, ...], int]) -> dict[int, list[Scan]] | None:
    """Return the reads of each table in an optimized query without marks, by the number of the table.

    Return None if two reads are of one relation with the same attributes. Spark repeats the rows around a correlated
    subquery in it; a mark shows which of the two the statement's own filter is for.

    Args:
        plans: plans of the optimized query.
        tables: number of each table, by its full name.

    Raises:
        UnfitError: the plan is too large.
    """
    found: dict[int, list[Scan]] = defaultdict(list)
    seen: set[int | None] = set()
    for place, (root, node, parent) in enumerate(plans.nodes()):
        if place >= _NODES_AT_MOST:
            raise _too_large()
        if node.kind != "LogicalRelation":
            continue
        relation = plans.in_jvm(root, node)
        number = tables.get(table_name(relation))
        if number is None:
            continue
        if not seen.isdisjoint(node.output):
            return None
        seen.update(node.output)
        above = parent if parent is not None and parent.kind == "Filter" else None
        tests = () if above is None else _conjuncts(plans.in_jvm(root, above).condition())
        found[number].append(Scan(relation, tuple(test for test in tests if test.deterministic())))
    return dict(found)


def filter_relations(spark: SparkSession, analyzed: Any, tests: Mapping[Any, str]) -> Any:
    """Return an analyzed plan in which only the rows of a relation that pass its test are read.

    The plan is what Spark makes of a text with ``(SELECT * FROM t WHERE test)`` in place of each table. It needs no
    analysis of that text, and reads the same lists of files as the given plan.

    Args:
        spark: session that will run the plan.
        analyzed: analyzed plan of a query.
        tests: SQL of the test of each relation of the plan.
    """
    jvm = jvm_of(spark)
    filtered = class_named(jvm, "java.util.HashMap")()
    for relation, test in tests.items():
        rows = frame_of_plan(spark, relation).where(test).select("*")
        filtered.put(relation, rows._jdf.queryExecution().analyzed())
    # in Scala, a map is a partial function
    rule = class_named(jvm, "PythonUtils").toScalaMap(filtered)
    plan = analyzed.transformUpWithSubqueries(rule)
    plan.setAnalyzed()
    return plan


def is_weaker(spark: SparkSession, accepted: DataFrame, scan: Scan) -> bool:
    """Return whether a filter keeps every row that a scan's tests keep: each of its tests is one of the scan's.

    This catches every test whose text does not mean the same as the test. Examples are texts and their escapes, a time
    that a clock shows twice, numbers, and functions that a session hides.

    Args:
        spark: session of the query.
        accepted: the same table, filtered by the text of the scan's tests.
        scan: read of the table in the query.
    """
    plan = accepted.select(*_columns_of(scan))._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() == "Project":
        plan = plan.child()
    if plan.nodeName() != "Filter" or plan.child().getClass().getSimpleName() != "LogicalRelation":
        return False
    known = [_normalized(spark, test, scan.relation) for test in scan.tests]
    return all(
        any(ours.equals(theirs) for theirs in known)
        for test in _conjuncts(plan.condition())
        if not _is_null_check(test)  # Spark adds this test to any comparison
        for ours in [_normalized(spark, test, plan.child())]
    )


def _normalized(spark: SparkSession, test: Any, relation: Any) -> Any:
    """Return a test with each column replaced by its index in the table, which two reads of the table share."""
    jvm = jvm_of(spark)
    columns = class_named(jvm, _COLUMNS)(relation.output())
    return class_named(jvm, _PLANS).normalizeExpressions(test, columns).canonicalized()


def _columns_of(scan: Scan) -> list[str]:
    """Return the leaf columns that a scan's tests use; of structs, Spark reads only the fields that the query needs."""
    names = {reference.name() for test in scan.tests for reference in _references(test)}
    schema = plain_columns(scan.relation.schema().json(), "a relation")
    leaves = [column for column in all_columns(schema) if not isinstance(column.data_type, StructType)]
    return [quote_name(*leaf.path) for leaf in leaves if leaf.path[0] in names]


def nodes(plan: Any, *, with_ctes: bool = False) -> Iterator[tuple[Any, Any | None]]:
    """Yield all nodes of a plan and of its subqueries, each with its parent."""
    waiting: list[tuple[Any, Any | None]] = [(plan, None)]
    for _ in range(_NODES_AT_MOST):
        if not waiting:
            return
        node, parent = waiting.pop()
        yield node, parent
        waiting.extend((child, node) for child in items(node.children()))
        waiting.extend((inner, None) for inner in items(node.subqueries()))
        if with_ctes and node.nodeName() == "UnresolvedWith":
            waiting.extend((inner, None) for inner in items(node.innerChildren()))
    if waiting:
        raise _too_large()


def _too_large() -> UnfitError:
    return UnfitError(f"the query has more than {_NODES_AT_MOST:,} steps")


def _conjuncts(condition: Any) -> Iterator[Any]:
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if part.getClass().getSimpleName() == "And":
            waiting += [part.right(), part.left()]
        else:
            yield part


def _reads_metadata(test: Any) -> bool:
    return any(reference.name() == METADATA for reference in _references(test))


def _is_null_check(test: Any) -> bool:
    """Return whether a test only checks that a column, or a field in one, is not NULL."""
    if test.getClass().getSimpleName() != "IsNotNull":
        return False
    return test.child().getClass().getSimpleName() in ("AttributeReference", "GetStructField")


def _without_qualifiers(test: Any) -> str:
    """Return a test as SQL with bare column names, whatever aliases the query gives the table.

    Only quoted texts are handled specially: ``is_weaker`` checks the result.
    """
    names = {reference.sql(): quote_name(reference.name()) for reference in _references(test)}
    if not names:
        return str(test.sql())
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"'(?:\\.|[^'\\])*'|(?<![\w`.])(?:{longest_first})(?![\w`])", re.DOTALL)
    return pattern.sub(lambda found: names.get(found[0], found[0]), str(test.sql()))


def _references(test: Any) -> list[Any]:
    return list(items(test.references().toSeq()))
