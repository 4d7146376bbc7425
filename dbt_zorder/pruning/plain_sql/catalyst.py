"""What Spark's own plans tell of a query: where its text names a table, and which rows of each table it can use.

Spark's optimizer moves every test that only one table decides down to that table: through joins, subqueries, CTEs and
views, and never past what it may not pass, such as the outer side of a join or a LIMIT. So the filter that lies on a
table in the end is what all rows of it must pass that the query goes by, which is not for us to find out once more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.columns import all_columns
from dbt_zorder.spark.jvm import class_named, items, jvm_of
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import plain_columns

_QUERY_OF = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect", "InsertIntoStatement"})
"""Statements that run a query once and keep its rows. A view would keep the files that were chosen."""

_NOT_QUERIES = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
)
_PLANS = "org.apache.spark.sql.catalyst.plans.QueryPlan"
_COLUMNS = "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq"
_MODE = "org.apache.spark.sql.execution.CommandExecutionMode"
_NODES_AT_MOST = 2_000
"""Each takes some 0.3 ms to look at."""

_METADATA = "_metadata"
_MARKS = 7_654_321_000
_MARK = re.compile(rf"_metadata`?\.`?file_size`? = -({_MARKS // 1000}\d{{3}})L")
_MARK_ALONE = re.compile(rf"\(NOT \([^()']*{_MARK.pattern}\)\)")
MENTIONS_AT_MOST = 100
_SUBQUERY = "subquery("
"""Stands for a subquery in the text of an expression."""


@dataclass(frozen=True)
class Mention:
    """A place in the text of a statement where a relation is named.

    Attributes:
        parts: the name's parts, without backticks.
        start, stop: of the name in the text; ``stop`` is behind it.
        is_named: an alias follows.
        stays: the text around it leaves no room for a subquery: it has options, or a limit by TABLESAMPLE.
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
        relation: the leaf of Spark's plan.
        tests: what its rows must pass, all of it; empty if all rows are used.
    """

    relation: Any
    tests: tuple[Any, ...]

    def texts(self) -> list[str]:
        """Return each test as SQL over the table's bare columns, but those on a subquery and on NULL alone.

        An inner join tests its columns for NULL, which leaves out next to no file.
        """
        return [
            text
            for test in self.tests
            if not _is_of_null(test) and _SUBQUERY not in (text := _without_qualifiers(test)).lower()
        ]


class UnfitError(Exception):
    """A query whose plan does not tell what it reads; the message says why."""


def query_of(spark: SparkSession, parsed: Any) -> Any | None:
    """Return the query that a parsed statement is, or whose rows it keeps; None if there is none."""
    if parsed.getClass().getSimpleName() in _QUERY_OF:
        return parsed.query()
    if parsed.getClass().getSimpleName() == "InsertIntoDir":
        return parsed.child()
    loader = class_named(jvm_of(spark), "py4j.reflection.TypeUtil")
    return None if any(loader.isInstanceOf(kind, parsed) for kind in _NOT_QUERIES) else parsed


def executed(spark: SparkSession, query: Any) -> Any:
    """Return Spark's execution of a parsed query, of which nothing runs before it is asked for rows."""
    session: Any = spark._jsparkSession
    return session.sessionState().executePlan(query, class_named(jvm_of(spark), _MODE).SKIP())


def mentions(query: Any) -> list[Mention]:
    """Return where a parsed query names relations that are not its own CTEs, in the order of the text.

    Raises:
        UnfitError: it takes a sample.
    """
    found: list[Mention] = []
    own: set[str] = set()
    for node, parent in nodes(query, with_ctes=True):
        name = node.nodeName()
        if name == "UnresolvedWith":
            own.update(alias.alias().lower() for alias in items(node.innerChildren()))
        if name == "Sample":
            msg = "it takes a sample, which is another where other rows are read"
            raise UnfitError(msg)
        if name != "UnresolvedRelation":
            continue
        origin = node.origin()
        parts = tuple(str(part) for part in items(node.multipartIdentifier()))
        if origin.startIndex().isDefined() and origin.stopIndex().isDefined():
            start, stop = origin.startIndex().get(), origin.stopIndex().get() + 1
            above = parent.nodeName() if parent is not None else ""
            is_named = above in ("SubqueryAlias", "UnresolvedSubqueryColumnAliases")
            stays = above in ("GlobalLimit", "LocalLimit") or not node.options().isEmpty()
            found.append(Mention(parts, start, stop, is_named, stays))
    free = [mention for mention in found if len(mention.parts) > 1 or mention.parts[0].lower() not in own]
    return sorted(set(free), key=lambda mention: mention.start)


def cached_parts(spark: SparkSession, execution: Any) -> int:
    """Return how many parts of a query Spark has in its cache."""
    session: Any = spark._jsparkSession
    if session.sharedState().cacheManager().isEmpty():
        return 0
    parts = execution.withCachedData()
    return sum(node.getClass().getSimpleName() == "InMemoryRelation" for node, _ in nodes(parts))


def mark(number: int) -> str:
    """Return a test that all rows of a file pass, by which a mention is told from others in a plan."""
    return f"{_METADATA}.file_size <> -{_MARKS + number}L"


def scans(optimized: Any) -> dict[int, list[Scan]]:
    """Return the reads of each marked mention in an optimized query: none, if no row of it is used; several of a CTE.

    Raises:
        UnfitError: there is too much of it.
    """
    found: dict[int, list[Scan]] = defaultdict(list)
    for node, parent in nodes(optimized):
        is_table = node.getClass().getSimpleName() == "LogicalRelation"
        if not is_table or parent is None or parent.nodeName() != "Filter":
            continue
        tests: list[Any] = []
        alone, inside = set[int](), set[int]()
        for test in _conjuncts(parent.condition()):
            if not _asks_of_file(test):
                tests += [test] if test.deterministic() else []
                continue
            numbers = {int(number) - _MARKS for number in _MARK.findall(str(test.sql()))}
            (alone if _MARK_ALONE.fullmatch(str(test.sql())) else inside).update(numbers)
        for number in alone | inside:
            # where a rule has made one test of several mentions' marks, what each of them is asked for cannot be told
            found[number].append(Scan(node, () if inside else tuple(tests)))
    return dict(found)


def is_weaker(spark: SparkSession, accepted: DataFrame, scan: Scan) -> bool:
    """Tell whether a filter keeps every row that a scan's tests keep: each test of it is one of the scan's.

    This catches whatever a test's text does not say as the test does: texts and their escapes, a time that a clock
    shows twice, numbers, functions that a session hides.

    Args:
        spark: the session.
        accepted: the same table, filtered by the text of the scan's tests.
        scan: of the query.
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
        if not _is_of_null(test)  # Spark adds it to any comparison
        for ours in [_normalized(spark, test, plan.child())]
    )


def _normalized(spark: SparkSession, test: Any, relation: Any) -> Any:
    """Return a test with its columns by their places in the table, which two reads of it have in common."""
    jvm = jvm_of(spark)
    columns = class_named(jvm, _COLUMNS)(relation.output())
    return class_named(jvm, _PLANS).normalizeExpressions(test, columns).canonicalized()


def _columns_of(scan: Scan) -> list[str]:
    """Return what a scan reads of the columns in its tests; of structs Spark reads only what the query needs."""
    names = {reference.name() for test in scan.tests for reference in _references(test)}
    schema = plain_columns(scan.relation.schema().json(), "a relation")
    leaves = [column for column in all_columns(schema) if not isinstance(column.data_type, StructType)]
    return [quote_name(*leaf.path) for leaf in leaves if leaf.path[0] in names]


def nodes(plan: Any, *, with_ctes: bool = False) -> Iterator[tuple[Any, Any | None]]:
    """Yield all nodes of a plan and of its subqueries, each with the one above it."""
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
        msg = f"the query has more than {_NODES_AT_MOST:,} steps"
        raise UnfitError(msg)


def _conjuncts(condition: Any) -> Iterator[Any]:
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if part.getClass().getSimpleName() == "And":
            waiting += [part.right(), part.left()]
        else:
            yield part


def _asks_of_file(test: Any) -> bool:
    return any(reference.name() == _METADATA for reference in _references(test))


def _is_of_null(test: Any) -> bool:
    """Tell whether a test asks nothing but that a column, or a field in one, is not NULL."""
    if test.getClass().getSimpleName() != "IsNotNull":
        return False
    return test.child().getClass().getSimpleName() in ("AttributeReference", "GetStructField")


def _without_qualifiers(test: Any) -> str:
    """Return a test as SQL, each column by its bare name, whatever aliases the query has for its table.

    No care is taken beyond that of texts in quotes: ``is_weaker`` tells whether it came out right.
    """
    names = {reference.sql(): quote_name(reference.name()) for reference in _references(test)}
    if not names:
        return str(test.sql())
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"'(?:\\.|[^'\\])*'|(?<![\w`.])(?:{longest_first})(?![\w`])", re.DOTALL)
    return pattern.sub(lambda found: names.get(found[0], found[0]), str(test.sql()))


def _references(test: Any) -> list[Any]:
    return list(items(test.references().toSeq()))
