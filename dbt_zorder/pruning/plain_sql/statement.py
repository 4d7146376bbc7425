"""Prune plain SQL: rewrite a statement so that its tables are read without the files that cannot match."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.pruning.files.session_settings import Settings, read_settings
from dbt_zorder.pruning.files.table_facts import find_relation
from dbt_zorder.pruning.plain_sql.catalyst import (
    MENTIONS_AT_MOST,
    Mention,
    Scan,
    Statement,
    UnfitError,
    cached_parts,
    filter_relations,
    find_mentions,
    find_query,
    find_reads,
    find_scans,
    mark,
    plan_query,
    table_name,
)
from dbt_zorder.pruning.plain_sql.fixed_values import fix_values
from dbt_zorder.pruning.plain_sql.metadata_answers import Answers, answer_aggregates
from dbt_zorder.pruning.plain_sql.parameters import Args, is_same, with_literals
from dbt_zorder.pruning.plain_sql.places import Place, replace_places
from dbt_zorder.pruning.plain_sql.repeatable import check_text, day_of, is_qualified, today
from dbt_zorder.pruning.plain_sql.scan_files import (
    Chooser,
    Reads,
    ScanFiles,
    Table,
    table_with_stats,
    tables_with_stats,
)
from dbt_zorder.pruning.plan import VARIABLE
from dbt_zorder.pruning.plans.pins import are_same, read_versions
from dbt_zorder.pruning.plans.tree import PlanTrees
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.jvm import active, frame_of_plan, has_jvm, sql_parser
from dbt_zorder.spark.messages import first_line, unlogged
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")
_KEYWORD = re.compile(r"\btable\s*\Z", re.IGNORECASE)
"""Keyword after which no subquery is allowed."""

PLANNING_SECONDS = 0.2
"""Time to choose the files of a statement. Where pruning is automatic, a statement must read its tables for longer."""

_SCANS_AT_MOST = 40
"""Maximum number of reads of tables whose files are chosen; each takes up to a tenth of a second to plan."""


@dataclass(frozen=True)
class TableRead:
    """Files that a statement reads of a table at one place.

    Attributes:
        table: quoted name.
        files, bytes: number and size of the table's files in its statistics.
        files_read, bytes_read: the same of those that the statement reads.
        rules: what excludes the others: the filter, each join, the limit, and metadata that answers without a file.
        reason: why all files are read; empty if files are excluded.
    """

    table: str
    files: int
    files_read: int
    bytes: int
    bytes_read: int
    rules: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.files_read} of {self.files} files are read"


@dataclass(frozen=True)
class Pruned:
    """A statement with the same result as the original, from fewer files.

    Attributes:
        sql: text of the statement; the original text if no file is excluded and no subquery was answered.
        places: reads of tables with statistics, in the order of the text, after those that metadata answers.
        reason: why no file is excluded of a table with statistics; else empty.
        plan: analyzed plan of ``sql``, if it was made. It lists the files of joined tables whose keys were read.
    """

    sql: str
    places: tuple[TableRead, ...] = ()
    reason: str = ""
    plan: Any = field(default=None, repr=False, compare=False)

    @property
    def reads(self) -> tuple[TableRead, ...]:
        """Return the places where files are excluded."""
        return tuple(place for place in self.places if not place.reason)

    def run(self, spark: SparkSession) -> DataFrame:
        """Run the statement, as ``spark.sql`` does."""
        return spark.sql(self.sql) if self.plan is None else frame_of_plan(spark, self.plan)


def query(spark: SparkSession, sql: str, args: Args | None = None) -> DataFrame:
    """Return the rows of a query, as ``spark.sql`` does, without opening files that cannot contain any of them.

    Examples:
        >>> query(spark, "SELECT customer_id FROM shop.orders WHERE order_id = :id", {"id": 42}).collect()
        [Row(customer_id=0)]

    Args:
        spark: reader's session, which must be in this process; over Spark Connect all files are read.
        sql: any query; its views, and tables without statistics, are read in full.
        args: values of its parameter markers: by name for ``:name``, in order for ``?``.

    Raises:
        AnalysisException, ParseException: Spark refuses the query; the error is that of ``spark.sql``.
    """
    if not args:
        return prepare(spark, sql).run(spark)
    text = _with_values(spark, sql, args)
    pruned = None if text is None else prepare(spark, text)
    if pruned is None or pruned.sql == text:
        return spark.sql(sql, args)  # type: ignore[arg-type]
    return pruned.run(spark)


def _with_values(spark: SparkSession, sql: str, args: Args) -> str | None:
    """Return a statement with literals in place of its markers; None if that may change its meaning."""
    if not has_jvm(spark):
        return None
    try:
        with active(spark), unlogged():
            text = with_literals(spark, sql, args)
            # Spark replaces ${...} in a statement, but not in a value
            return text if text is not None and VARIABLE not in text and is_same(spark, sql, args, text) else None
    except Exception as exc:  # any doubt is a full read, and Spark reports the fault
        _LOG.debug("all files are read: %s", first_line(exc))
        return None


def prune_statement(spark: SparkSession, sql: str) -> Pruned:
    """Return a statement that skips every file of a z-ordered Parquet table without a row that it uses.

    Queries, ``CREATE TABLE ... AS`` and ``INSERT`` are pruned; any other statement stays unchanged. The text may run
    later, so that joins, limits, subqueries and the clock exclude no file. Never raises: Spark reports the errors of a
    statement.

    Examples:
        >>> pruned = prune_statement(spark, "SELECT * FROM shop.orders WHERE order_id = 42")
        >>> [(read.files_read, read.files) for read in pruned.reads]
        [(2, 4)]
    """
    return _logged(_prune(spark, sql, at_once=False), logging.INFO)


def prepare(spark: SparkSession, sql: str, *, automatic: bool = False) -> Pruned:
    """Return a statement to run at once: its joins, limits, scalar subqueries and clock exclude files. Never raises.

    Args:
        spark: session that will run the statement.
        sql: any statement.
        automatic: whether to leave statements alone that read so little that planning costs more than it saves.
    """
    pruned = _prune(spark, sql, at_once=True, automatic=automatic)
    return _logged(pruned, logging.DEBUG if automatic else logging.INFO)


def _logged(pruned: Pruned, level: int) -> Pruned:
    for line in dict.fromkeys(map(str, pruned.reads)):
        _LOG.log(level, line)
    if pruned.reason:
        _LOG.debug("all files are read: %s", pruned.reason)
    return pruned


def _prune(spark: SparkSession, sql: str, *, at_once: bool, automatic: bool = False) -> Pruned:
    if not has_jvm(spark):
        return Pruned(sql, reason="only a session in this process shows what a query reads")
    if VARIABLE in sql:
        return Pruned(sql, reason="Spark replaces ${...} in it by a setting's value when it runs")
    try:
        with active(spark), unlogged():
            return _pruned(spark, sql, at_once=at_once, automatic=automatic)
    except UnfitError as exc:
        return Pruned(sql, reason=str(exc))
    except Exception as exc:  # any doubt is a full read
        return Pruned(sql, reason=f"pruning failed: {first_line(exc)}")


def _pruned(spark: SparkSession, sql: str, *, at_once: bool, automatic: bool = False, fixed: bool = False) -> Pruned:
    settings = read_settings(spark)
    parsed = sql_parser(spark).parsePlan(sql)
    asked = find_query(spark, parsed)
    if asked is None:
        return Pruned(sql)
    statement = Statement(sql, asked, plan_query(spark, asked))
    mentions = find_mentions(statement)
    if not mentions:
        return Pruned(sql)
    plain = statement.plan
    reads = tables_with_stats(spark, plain.analyzed())
    tables: dict[Mention, Table] = {}
    reason = ""
    if automatic and 0 < sum(one.seconds for one in reads.values()) < PLANNING_SECONDS:
        reason = "its z-ordered tables are small"
    else:
        tables = _with_stats(spark, sql, [one for one in mentions if one.parts[-1].lower() in reads])
    if not tables:
        return Pruned(sql, reason=reason, plan=plain.analyzed() if asked is parsed else None)
    check_text(sql)
    if at_once and not fixed:
        answers = answer_aggregates(spark, statement, tables)
        if answers is not None:
            return _answered(spark, answers, settings)
        values = fix_values(spark, statement, [table.facts for table in tables.values()], query)
        if values.sql != sql:
            pruned = _pruned(spark, values.sql, at_once=True, fixed=True)
            _check_settings(spark, settings)
            return pruned if pruned.reads or values.has_answers else replace(pruned, sql=sql, plan=None)
    sole = _sole_relations(spark, tables, reads) if at_once and asked is parsed else None
    found: dict[int, list[Scan]] | None = None
    if sole is not None:
        day, plans = day_of(spark, plain.analyzed(), sql), PlanTrees(plain.optimizedPlan())
        found = find_reads(plans, {table_name(relation): number for number, relation in enumerate(sole.values())})
    if sole is None or found is None:
        sole = None
        found, day, plans = _scans(spark, sql, plain, tables)
    chooser = Chooser(spark, settings, plans if at_once else None)
    chosen: dict[Mention, list[ScanFiles]] = {}
    places: list[TableRead] = []
    left = _SCANS_AT_MOST
    for number, (place, table) in enumerate(tables.items()):
        scans = found.get(number, [])
        left -= len(scans)
        if left < 0:
            files: list[ScanFiles | str] = [f"the statement reads z-ordered tables more than {_SCANS_AT_MOST} times"]
        else:
            files = [chooser.choose(table, scan) for scan in scans]
        reason = next((one for one in files if isinstance(one, str)), "" if files else "no row of it is used")
        if not reason:
            chosen[place] = [one for one in files if isinstance(one, ScanFiles)]
        places.append(_table_read(table, chosen.get(place, ()), reason))
    _check_settings(spark, settings, day)
    if not chosen:
        reasons = dict.fromkeys(f"{place.table}: {place.reason}" for place in places)
        plan = plain.analyzed() if at_once and asked is parsed else None
        return Pruned(sql, tuple(places), "; ".join(reasons), plan)
    # constants differ on another day, so all files are read then: Spark evaluates this before it lists files
    also = [] if day is None else [f"NOT (current_date() <=> {day})"]
    tests = {place: " OR ".join(dict.fromkeys([*also, *(one.test for one in chosen[place])])) for place in chosen}
    text = _filtered(sql, tests, tables)
    pins = {folders: files for scans in chosen.values() for one in scans for folders, files in one.by_plan.pins.items()}
    if sole is not None and read_versions(spark, pins) is not None:  # the files whose keys were read are still there
        plan = filter_relations(spark, plain.analyzed(), {sole[place]: test for place, test in tests.items()})
    else:
        plan = plan_query(spark, sql_parser(spark).parsePlan(text)).analyzed()
        if sole is not None:
            _check_columns(plan, plain)
    if not are_same(pins, plan):
        msg = "another process changed what it joins meanwhile"
        raise UnfitError(msg)
    return Pruned(text, tuple(places), plan=plan)


def _answered(spark: SparkSession, answers: Answers, settings: Settings) -> Pruned:
    """Return a statement with answers from statistics, pruned as far as it reads tables."""
    rest = _pruned(spark, answers.sql, at_once=True)
    _check_settings(spark, settings)
    if answers.pins:  # its other reads of the same tables are of the same files
        plan = rest.plan or plan_query(spark, sql_parser(spark).parsePlan(rest.sql)).analyzed()
        if not are_same(answers.pins, plan, all_there=False):
            msg = "another process changed a table meanwhile that it counts and reads"
            raise UnfitError(msg)
        rest = replace(rest, plan=plan)
    places = [
        TableRead(table, len(files), 0, sum(one.size for one in files), 0, ("metadata",))
        for table, files in answers.reads
    ]
    return replace(rest, places=(*places, *rest.places), reason="")


def _check_settings(spark: SparkSession, settings: Settings, day: str | None = None) -> None:
    """Raise if the session has other settings than before, or another day if one is given."""
    if read_settings(spark) != settings or (day is not None and today(spark) != day):
        msg = "another thread changed Spark's settings meanwhile, or the day has ended"
        raise UnfitError(msg)


def _table_read(table: Table, scans: Sequence[ScanFiles], reason: str) -> TableRead:
    """Return the files that are read at a place; several scans of a CTE share them."""
    out = set.intersection(*(set(one.excluded) for one in scans)) if scans else set()
    rules: list[str] = []
    for one in scans:
        rules += ["filter"] * (one.by_tests > 0) + one.by_plan.rules
    files, _, size = table.totals
    less = sum(scans[0].excluded[path] for path in out)
    return TableRead(table.facts.sql, files, files - len(out), size, size - less, tuple(dict.fromkeys(rules)), reason)


def _with_stats(spark: SparkSession, sql: str, places: Sequence[Mention]) -> dict[Mention, Table]:
    """Return the mentions of tables with statistics, at positions where a subquery is allowed."""
    found: dict[Mention, Table] = {}
    known: dict[str, Table | None] = {}
    for place in places[:MENTIONS_AT_MOST]:
        is_spelled = tuple(split_name(sql[place.start : place.stop])) == place.parts
        if place.stays or not is_spelled or _KEYWORD.search(sql, 0, place.start):
            continue
        table = quote_name(*place.parts)
        if table not in known:
            known[table] = None if is_qualified(sql, place.parts[-1]) else table_with_stats(spark, table)
        asked = known[table]
        if asked is not None:
            found[place] = asked
    return found


def _sole_relations(
    spark: SparkSession, tables: Mapping[Mention, Table], reads: Mapping[str, Reads]
) -> dict[Mention, Any] | None:
    """Return the relation that the plan has of each table; None if a table is read twice, or is not the relation alone.

    All scans of a table in the optimized plan are then of this relation, and no mark needs to say so.
    """
    session: Any = spark._jsparkSession
    if not session.sharedState().cacheManager().isEmpty():
        return None
    found: dict[Mention, Any] = {}
    for place, table in tables.items():
        relations = reads[place.parts[-1].lower()].relations
        if len(relations) != 1 or find_relation(table.frame._jdf) is None:
            return None
        if table_name(relations[0]) != table.facts.qualifiers[0]:
            return None
        found[place] = relations[0]
    return found


def _scans(
    spark: SparkSession, sql: str, plain: Any, tables: Mapping[Mention, Table]
) -> tuple[dict[int, list[Scan]], str | None, PlanTrees]:
    """Return the query's reads of each mention, the day for which they are valid, and its optimized plan.

    A mark in the text, which Spark keeps in its plan, identifies each mention. The day is None if the query does not
    use the current day.

    Args:
        spark: session that will run the statement.
        sql: text of the statement.
        plain: Spark's execution of the query in it.
        tables: tables with statistics by their mentions.
    """
    text = _filtered(sql, {place: mark(number) for number, place in enumerate(tables)}, tables)
    marked = plan_query(spark, find_query(spark, sql_parser(spark).parsePlan(text)))
    day = day_of(spark, marked.analyzed(), sql)
    _check_columns(marked.analyzed(), plain)
    if cached_parts(spark, plain) > cached_parts(spark, marked):
        msg = "a part of it is in Spark's cache"
        raise UnfitError(msg)
    plans = PlanTrees(marked.optimizedPlan())
    return find_scans(plans), day, plans


def _check_columns(analyzed: Any, plain: Any) -> None:
    """Raise if an analyzed plan gives other columns than a query."""
    if not analyzed.schema().equals(plain.analyzed().schema()):
        msg = "it does not give the same columns where its tables are filtered"
        raise UnfitError(msg)


def _filtered(sql: str, tests: Mapping[Mention, str], tables: Mapping[Mention, Table]) -> str:
    """Return a text that reads, at each mention of a table, only the rows that pass a test."""
    texts: dict[Place, str] = {}
    for place, test in tests.items():
        # as the catalog spells it, because columns are qualified by that
        qualifiers = tables[place].facts.qualifiers
        own = qualifiers[-1][-1] if qualifiers else place.parts[-1]
        name = "" if place.is_named else f" AS {quote_name(own)}"
        at = Place(place.start, place.stop)
        texts[at] = f"(SELECT * FROM {at.text_in(sql)} WHERE ({test})){name}"
    return replace_places(sql, texts)
