"""Prune plain SQL: rewrite a statement so that its tables are read without the files that cannot match."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.pruning.files.session_settings import Settings, read_settings
from dbt_zorder.pruning.files.stats_source import read_stats
from dbt_zorder.pruning.files.table_facts import TableFacts, read_facts
from dbt_zorder.pruning.plain_sql.catalyst import (
    MENTIONS_AT_MOST,
    Mention,
    Scan,
    UnfitError,
    cached_parts,
    find_mentions,
    find_query,
    find_scans,
    is_weaker,
    mark,
    plan_query,
)
from dbt_zorder.pruning.plain_sql.fixed_values import fix_values
from dbt_zorder.pruning.plain_sql.parameters import Args, is_same, with_literals
from dbt_zorder.pruning.plain_sql.repeatable import check_text, day_of, is_qualified, today
from dbt_zorder.pruning.plan import VARIABLE, Plan, make_plan
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.jvm import active, has_jvm, sql_parser
from dbt_zorder.spark.messages import first_line, unlogged
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")
_KEYWORD = re.compile(r"\btable\s*\Z", re.IGNORECASE)
"""Keyword after which no subquery is allowed."""

_SCANS_AT_MOST = 40
_CHARACTERS_AT_MOST = 50_000


@dataclass(frozen=True)
class TableRead:
    """Files that a statement reads of a table.

    Attributes:
        table: quoted name.
        files: number of the table's files in its statistics.
        files_read: number of these files that the statement reads.
    """

    table: str
    files: int
    files_read: int


@dataclass(frozen=True)
class Pruned:
    """A statement with the same result as the original, from fewer files.

    Attributes:
        sql: text of the statement; the original text if no file is excluded and no subquery was answered.
        reads: tables whose files are partly excluded.
        reason: why no file is excluded of a table with statistics; else empty.
    """

    sql: str
    reads: tuple[TableRead, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Table:
    """A table with statistics that a statement mentions.

    Attributes:
        facts: facts of the table.
        frame: the table as Spark resolved it when the facts were read.
    """

    facts: TableFacts
    frame: DataFrame


def query(spark: SparkSession, sql: str, args: Args | None = None) -> DataFrame:
    """Return the rows of a query, as ``spark.sql`` does, without opening files that cannot contain any of them.

    Args:
        spark: reader's session, which must be in this process; over Spark Connect all files are read.
        sql: any query; its views, and tables without statistics, are read in full.
        args: values of its parameter markers: by name for ``:name``, in order for ``?``.

    Raises:
        AnalysisException, ParseException: Spark refuses the query; the error is that of ``spark.sql``.
    """
    if not args:
        return spark.sql(prune_statement(spark, sql).sql)
    pruned = _pruned_with(spark, sql, args)
    return spark.sql(sql, args) if pruned is None else spark.sql(pruned)  # type: ignore[arg-type]


def _pruned_with(spark: SparkSession, sql: str, args: Args) -> str | None:
    """Return a statement with literals in place of its markers, from fewer files; None if no file is excluded."""
    if not has_jvm(spark):
        return None
    try:
        with active(spark), unlogged():
            text = with_literals(spark, sql, args)
            # Spark replaces ${...} in a statement, but not in a value
            if text is None or VARIABLE in text or not is_same(spark, sql, args, text):
                return None
    except Exception as exc:  # any doubt is a full read, and Spark reports the fault
        _LOG.debug("all files are read: %s", first_line(exc))
        return None
    pruned = prune_statement(spark, text)
    return pruned.sql if pruned.sql != text else None


def prune_statement(spark: SparkSession, sql: str) -> Pruned:
    """Return a statement that skips every file of a z-ordered Parquet table without a row that it uses.

    Queries, ``CREATE TABLE ... AS`` and ``INSERT`` are pruned; any other statement stays unchanged. Never raises: Spark
    reports the errors of a statement.
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


def _pruned(spark: SparkSession, sql: str, *, fixed: bool = False) -> Pruned:
    settings = read_settings(spark)
    asked = find_query(spark, sql_parser(spark).parsePlan(sql))
    if asked is None:
        return Pruned(sql)
    tables = _with_stats(spark, sql, find_mentions(asked))
    if not tables:
        return Pruned(sql)
    check_text(sql)
    if not fixed:
        values = fix_values(spark, sql, [table.facts for table in tables.values()], query)
        if values.sql != sql:
            pruned = _pruned(spark, values.sql, fixed=True)
            _check_settings(spark, settings)
            return pruned if pruned.reads or values.has_answers else Pruned(sql, reason=pruned.reason)
    found, day = _scans(spark, sql, asked, tables)
    known: dict[tuple[str, str], Plan] = {}
    plans = {place: _plans(spark, table, found.get(n, []), known) for n, (place, table) in enumerate(tables.items())}
    _check_settings(spark, settings, day)
    chosen = {place: plan for place, plan in plans.items() if not isinstance(plan, str)}
    # constants differ on another day, so all files are read then: Spark evaluates this before it lists files
    also = [] if day is None else [f"NOT (current_date() <=> {day})"]
    tests = {
        place: " OR ".join(dict.fromkeys([*also, *(str(plan.exclusion) for plan in chosen[place])])) for place in chosen
    }
    reasons = [f"{tables[place].facts.sql}: {reason}" for place, reason in plans.items() if isinstance(reason, str)]
    reads = tuple(_table_read(tables[place].facts.sql, chosen[place]) for place in chosen)
    return Pruned(_filtered(sql, tests, tables), reads, "" if reads else "; ".join(dict.fromkeys(reasons)))


def _check_settings(spark: SparkSession, settings: Settings, day: str | None = None) -> None:
    """Raise if the session has other settings than before, or another day if one is given."""
    if read_settings(spark) != settings or (day is not None and today(spark) != day):
        msg = "another thread changed Spark's settings meanwhile, or the day has ended"
        raise UnfitError(msg)


def _with_stats(spark: SparkSession, sql: str, places: Sequence[Mention]) -> dict[Mention, _Table]:
    """Return the mentions of tables with statistics, at positions where a subquery is allowed."""
    found: dict[Mention, _Table] = {}
    known: dict[str, _Table | None] = {}
    for place in places[:MENTIONS_AT_MOST]:
        is_spelled = tuple(split_name(sql[place.start : place.stop])) == place.parts
        if place.stays or not is_spelled or _KEYWORD.search(sql, 0, place.start):
            continue
        table = quote_name(*place.parts)
        if table not in known:
            known[table] = None if is_qualified(sql, place.parts[-1]) else _table_with_stats(spark, table)
        asked = known[table]
        if asked is not None:
            found[place] = asked
    return found


def _table_with_stats(spark: SparkSession, table: str) -> _Table | None:
    try:
        frame = spark.table(table)
        facts = read_facts(spark, table, frame)
    except Exception:  # no such table, which Spark reports
        return None
    has_stats = facts.provider == "parquet" and read_stats(spark, facts).frame is not None
    return _Table(facts, frame) if has_stats else None


def _scans(
    spark: SparkSession, sql: str, asked: Any, tables: Mapping[Mention, _Table]
) -> tuple[dict[int, list[Scan]], str | None]:
    """Return the query's reads of each mention, and the day for which they are valid.

    A mark in the text, which Spark keeps in its plan, identifies each mention. The day is None if the query does not
    use the current day.
    """
    text = _filtered(sql, {place: mark(number) for number, place in enumerate(tables)}, tables)
    marked = plan_query(spark, find_query(spark, sql_parser(spark).parsePlan(text)))
    day = day_of(spark, marked.analyzed(), sql)
    plain = plan_query(spark, asked)
    if not marked.analyzed().schema().equals(plain.analyzed().schema()):
        msg = "it does not give the same columns where its tables are filtered"
        raise UnfitError(msg)
    if cached_parts(spark, plain) > cached_parts(spark, marked):
        msg = "a part of it is in Spark's cache"
        raise UnfitError(msg)
    found = find_scans(marked.optimizedPlan())
    if sum(map(len, found.values())) > _SCANS_AT_MOST:
        msg = f"it reads z-ordered tables more than {_SCANS_AT_MOST} times, and each takes a tenth of a second to plan"
        raise UnfitError(msg)
    return found, day


def _filtered(sql: str, tests: Mapping[Mention, str], tables: Mapping[Mention, _Table]) -> str:
    """Return a text that reads, at each mention of a table, only the rows that pass a test."""
    for place in sorted(tests, key=lambda place: place.start, reverse=True):
        # as the catalog spells it, because columns are qualified by that
        qualifiers = tables[place].facts.qualifiers
        own = qualifiers[-1][-1] if qualifiers else place.parts[-1]
        name = "" if place.is_named else f" AS {quote_name(own)}"
        table = sql[place.start : place.stop]
        sql = f"{sql[: place.start]}(SELECT * FROM {table} WHERE ({tests[place]})){name}{sql[place.stop :]}"
    return sql


def _plans(
    spark: SparkSession, table: _Table, found: Sequence[Scan], known: dict[tuple[str, str], Plan]
) -> list[Plan] | str:
    """Return a plan for each read of a mention; or a reason, if one of the reads cannot exclude files."""
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
    except ZorderError:  # Spark cannot read back the text of one of them
        texts = [text for text in texts if _is_valid(frame, text)]
        return make_plan(spark, name, " AND ".join(texts or ["TRUE"]), zoned=True, frame=frame)


def _is_valid(frame: DataFrame, text: str) -> bool:
    try:
        frame.where(text)
    except Exception:  # Spark refuses it, for any reason
        return False
    return True


def _table_read(table: str, plans: Sequence[Plan]) -> TableRead:
    decisions = [plan.decision for plan in plans if plan.decision is not None]
    excluded = set.intersection(*({path for path, _ in decision.excluded} for decision in decisions))
    return TableRead(table, decisions[0].files, decisions[0].files - len(excluded))
