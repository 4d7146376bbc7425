"""Plain SQL that reads no file which cannot match: the tables of a statement are read without them, by what it asks."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.pruning.files.session_settings import settings_of
from dbt_zorder.pruning.files.stats_source import read_stats
from dbt_zorder.pruning.files.table_facts import TableFacts, facts_of
from dbt_zorder.pruning.plain_sql.catalyst import (
    MENTIONS_AT_MOST,
    Mention,
    Scan,
    UnfitError,
    cached_parts,
    executed,
    is_weaker,
    mark,
    mentions,
    query_of,
    scans,
)
from dbt_zorder.pruning.plain_sql.parameters import Args, is_same, with_literals
from dbt_zorder.pruning.plain_sql.repeatable import check_text, day_of, names_whole, today
from dbt_zorder.pruning.plan import VARIABLE, Plan, make_plan
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.jvm import active, has_jvm, sql_parser
from dbt_zorder.spark.messages import first_line, unlogged
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")
_KEYWORD = re.compile(r"\btable\s*\Z", re.IGNORECASE)
"""Behind which no subquery may stand."""

_SCANS_AT_MOST = 40
_CHARACTERS_AT_MOST = 50_000


@dataclass(frozen=True)
class TableRead:
    """What a statement reads of a table of which it leaves files out.

    Attributes:
        table: quoted name.
        files: of the table, as its statistics know them.
        files_read: of these.
    """

    table: str
    files: int
    files_read: int


@dataclass(frozen=True)
class Pruned:
    """A statement that gives what it gave, from fewer files.

    Attributes:
        sql: its text; as it was, if no file is left out.
        reads: the tables of which files are left out.
        reason: why no file is left out, where there was something to look at; else empty.
    """

    sql: str
    reads: tuple[TableRead, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Table:
    """A table with statistics that a statement mentions.

    Attributes:
        facts: where it lies.
        frame: the table itself, as Spark had it when the facts were asked for.
    """

    facts: TableFacts
    frame: DataFrame


def query(spark: SparkSession, sql: str, args: Args | None = None) -> DataFrame:
    """Return the rows of a query, as ``spark.sql`` does, without opening files that cannot hold any of them.

    Args:
        spark: the reader's session, which must be in this process: over Spark Connect all files are read.
        sql: any query; views in it, and tables without statistics, are read in full.
        args: values of its parameter markers: by name for ``:name``, in order for ``?``.

    Raises:
        AnalysisException, ParseException: Spark refuses the query; the error is that of ``spark.sql``.
    """
    if not args:
        return spark.sql(prune_statement(spark, sql).sql)
    pruned = _pruned_with(spark, sql, args)
    return spark.sql(sql, args) if pruned is None else spark.sql(pruned)  # type: ignore[arg-type]


def _pruned_with(spark: SparkSession, sql: str, args: Args) -> str | None:
    """Return a statement with literals in the place of its values, from fewer files; None if it leaves out none."""
    if not has_jvm(spark):
        return None
    try:
        with active(spark), unlogged():
            text = with_literals(spark, sql, args)
            # Spark replaces ${...} in a statement, and not in a value
            if text is None or VARIABLE in text or not is_same(spark, sql, args, text):
                return None
    except Exception as exc:  # any doubt is a full read, and Spark says what the fault is
        _LOG.debug("all files are read: %s", first_line(exc))
        return None
    pruned = prune_statement(spark, text)
    return pruned.sql if pruned.reads else None


def prune_statement(spark: SparkSession, sql: str) -> Pruned:
    """Return a statement that reads no file of a z-ordered Parquet table which cannot hold a row that it uses.

    A query, a ``CREATE TABLE ... AS`` and an ``INSERT`` are looked at; all else stays as it is. Never raises: what is
    wrong with a statement is for Spark to say.
    """
    if not has_jvm(spark):
        return Pruned(sql, reason="only a session in this process tells what a query reads")
    if VARIABLE in sql:
        return Pruned(sql, reason="Spark replaces ${...} in it by a setting's value when it runs")
    try:
        with active(spark), unlogged():
            pruned = _pruned(spark, sql)
    except UnfitError as exc:
        pruned = Pruned(sql, reason=str(exc))
    except Exception as exc:  # any doubt is a full read
        pruned = Pruned(sql, reason=f"pruning failed: {first_line(exc)}")
    for line in dict.fromkeys(
        f"{read.table}: {read.files_read} of {read.files} files are read" for read in pruned.reads
    ):
        _LOG.info(line)
    if pruned.reason:
        _LOG.debug("all files are read: %s", pruned.reason)
    return pruned


def _pruned(spark: SparkSession, sql: str) -> Pruned:
    meant = settings_of(spark)
    asked = query_of(spark, sql_parser(spark).parsePlan(sql))
    if asked is None:
        return Pruned(sql)
    tables = _with_stats(spark, sql, mentions(asked))
    if not tables:
        return Pruned(sql)
    check_text(sql)
    found, day = _scans(spark, sql, asked, tables)
    known: dict[tuple[str, str], Plan] = {}
    plans = {place: _plans(spark, table, found.get(n, []), known) for n, (place, table) in enumerate(tables.items())}
    if settings_of(spark) != meant or (day is not None and today(spark) != day):
        msg = "another thread changed Spark's settings meanwhile, or the day has ended"
        raise UnfitError(msg)
    chosen = {place: plan for place, plan in plans.items() if not isinstance(plan, str)}
    # on another day the constants are others, so all files are read: Spark finds out before it lists them
    also = [] if day is None else [f"NOT (current_date() <=> {day})"]
    tests = {
        place: " OR ".join(dict.fromkeys([*also, *(str(plan.exclusion) for plan in chosen[place])])) for place in chosen
    }
    reasons = [f"{tables[place].facts.sql}: {reason}" for place, reason in plans.items() if isinstance(reason, str)]
    reads = tuple(_read_of(tables[place].facts.sql, chosen[place]) for place in chosen)
    return Pruned(_filtered(sql, tests, tables), reads, "" if reads else "; ".join(dict.fromkeys(reasons)))


def _with_stats(spark: SparkSession, sql: str, places: Sequence[Mention]) -> dict[Mention, _Table]:
    """Return the mentions of tables that have statistics, where a subquery may stand in place of the table."""
    found: dict[Mention, _Table] = {}
    known: dict[str, _Table | None] = {}
    for place in places[:MENTIONS_AT_MOST]:
        is_spelled = tuple(split_name(sql[place.start : place.stop])) == place.parts
        if place.stays or not is_spelled or _KEYWORD.search(sql, 0, place.start):
            continue
        table = quote_name(*place.parts)
        if table not in known:
            known[table] = None if names_whole(sql, place.parts[-1]) else _table_with_stats(spark, table)
        asked = known[table]
        if asked is not None:
            found[place] = asked
    return found


def _table_with_stats(spark: SparkSession, table: str) -> _Table | None:
    try:
        frame = spark.table(table)
        facts = facts_of(spark, table, frame)
    except Exception:  # there is no such table, which is for Spark to say
        return None
    has_stats = facts.provider == "parquet" and read_stats(spark, facts).frame is not None
    return _Table(facts, frame) if has_stats else None


def _scans(
    spark: SparkSession, sql: str, asked: Any, tables: Mapping[Mention, _Table]
) -> tuple[dict[int, list[Scan]], str | None]:
    """Return what the query reads of each mention, in a text where each has a mark that Spark carries along.

    Behind it stands the day by which it is so, if it asks for the day.
    """
    text = _filtered(sql, {place: mark(number) for number, place in enumerate(tables)}, tables)
    marked = executed(spark, query_of(spark, sql_parser(spark).parsePlan(text)))
    day = day_of(spark, marked.analyzed(), sql)
    plain = executed(spark, asked)
    if not marked.analyzed().schema().equals(plain.analyzed().schema()):
        msg = "it does not give the same columns where its tables are filtered"
        raise UnfitError(msg)
    if cached_parts(spark, plain) > cached_parts(spark, marked):
        msg = "a part of it is in Spark's cache"
        raise UnfitError(msg)
    found = scans(marked.optimizedPlan())
    if sum(map(len, found.values())) > _SCANS_AT_MOST:
        msg = f"it reads z-ordered tables more than {_SCANS_AT_MOST} times, and each takes a tenth of a second to plan"
        raise UnfitError(msg)
    return found, day


def _filtered(sql: str, tests: Mapping[Mention, str], tables: Mapping[Mention, _Table]) -> str:
    """Return a text that reads, where a table is mentioned, those of its rows for which a test holds."""
    for place in sorted(tests, key=lambda place: place.start, reverse=True):
        # as the catalog spells it, which is what columns are qualified by
        qualifiers = tables[place].facts.qualifiers
        own = qualifiers[-1][-1] if qualifiers else place.parts[-1]
        name = "" if place.is_named else f" AS {quote_name(own)}"
        table = sql[place.start : place.stop]
        sql = f"{sql[: place.start]}(SELECT * FROM {table} WHERE ({tests[place]})){name}{sql[place.stop :]}"
    return sql


def _plans(
    spark: SparkSession, table: _Table, found: Sequence[Scan], known: dict[tuple[str, str], Plan]
) -> list[Plan] | str:
    """Return how each read of a mention leaves files out; a text that says why, if one of them leaves out none."""
    if not found:
        return "no row of it is used"
    plans: list[Plan] = []
    for scan in found:
        texts = scan.texts()
        if not texts:
            return "all of its rows are used"
        predicate = " AND ".join(texts)
        if len(predicate) > _CHARACTERS_AT_MOST:
            return "what it asks of the rows is too long a text"
        name = table.facts.sql
        if (name, predicate) not in known:
            known[name, predicate] = _plan(spark, table, texts)
        plan = known[name, predicate]
        if plan.exclusion is None:
            return plan.reason
        if not is_weaker(spark, plan.accepted, scan):
            return "Spark does not confirm the text of what it asks of the rows"
        plans.append(plan)
    return plans


def _plan(spark: SparkSession, table: _Table, texts: Sequence[str]) -> Plan:
    name, frame = table.facts.sql, table.frame
    try:
        return make_plan(spark, name, " AND ".join(texts), zoned=True, frame=frame)
    except ZorderError:  # one of them has no text that Spark reads back
        texts = [text for text in texts if _is_valid(frame, text)]
        return make_plan(spark, name, " AND ".join(texts or ["TRUE"]), zoned=True, frame=frame)


def _is_valid(frame: DataFrame, text: str) -> bool:
    try:
        frame.where(text)
    except Exception:  # Spark refuses it, for whatever reason
        return False
    return True


def _read_of(table: str, plans: Sequence[Plan]) -> TableRead:
    decisions = [plan.decision for plan in plans if plan.decision is not None]
    excluded = set.intersection(*({path for path, _ in decision.excluded} for decision in decisions))
    return TableRead(table, decisions[0].files, decisions[0].files - len(excluded))
