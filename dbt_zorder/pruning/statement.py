"""Plain SQL that reads no file which cannot match: the tables of a statement are read without them, by what it asks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.columns import split_name
from dbt_zorder.errors import ZorderError
from dbt_zorder.jvm import active, has_jvm, sql_parser
from dbt_zorder.pruning.catalyst import (
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
from dbt_zorder.pruning.plan import VARIABLE, Plan, make_plan
from dbt_zorder.pruning.stats_source import first_line, read_stats
from dbt_zorder.pruning.table_facts import facts_of
from dbt_zorder.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")


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


def query(spark: SparkSession, sql: str) -> DataFrame:
    """Return the rows of a query, as ``spark.sql`` does, without opening files that cannot hold any of them.

    Args:
        spark: the reader's session, which must be in this process: over Spark Connect all files are read.
        sql: any query; views in it, and tables without statistics, are read in full.
    """
    return spark.sql(prune_statement(spark, sql).sql)


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
        with active(spark):
            pruned = _pruned(spark, sql)
    except UnfitError as exc:
        pruned = Pruned(sql, reason=str(exc))
    except Exception as exc:  # any doubt is a full read
        pruned = Pruned(sql, reason=f"pruning failed: {first_line(exc)}")
    for read in pruned.reads:
        _LOG.info("%s: %d of %d files are read", read.table, read.files_read, read.files)
    if pruned.reason:
        _LOG.debug("all files are read: %s", pruned.reason)
    return pruned


def _pruned(spark: SparkSession, sql: str) -> Pruned:
    asked = query_of(spark, sql_parser(spark).parsePlan(sql))
    if asked is None:
        return Pruned(sql)
    places = [place for place in mentions(asked) if not place.stays]
    tables = _with_stats(spark, sql, places)
    if not tables:
        return Pruned(sql)
    found = _scans(spark, sql, asked, list(tables))
    plans = {place: _plans(spark, tables[place], found.get(number, [])) for number, place in enumerate(tables)}
    chosen = {place: plan for place, plan in plans.items() if not isinstance(plan, str)}
    tests = {place: " OR ".join(dict.fromkeys(str(plan.exclusion) for plan in chosen[place])) for place in chosen}
    reasons = [f"{tables[place]}: {reason}" for place, reason in plans.items() if isinstance(reason, str)]
    reads = tuple(_read_of(tables[place], chosen[place]) for place in chosen)
    return Pruned(_filtered(sql, tests), reads, "" if reads else "; ".join(dict.fromkeys(reasons)))


def _with_stats(spark: SparkSession, sql: str, places: Sequence[Mention]) -> dict[Mention, str]:
    """Return the mentions of tables that have statistics, with the tables' quoted names."""
    found: dict[Mention, str] = {}
    known: dict[str, bool] = {}
    for place in places[:MENTIONS_AT_MOST]:
        if tuple(split_name(sql[place.start : place.stop])) != place.parts:
            msg = "the place of a table in its text is not where Spark says"
            raise UnfitError(msg)
        table = quote_name(*place.parts)
        if table not in known:
            known[table] = _has_stats(spark, table)
        if known[table]:
            found[place] = table
    return found


def _has_stats(spark: SparkSession, table: str) -> bool:
    try:
        facts = facts_of(spark, table, spark.table(table))
    except Exception:  # there is no such table, which is for Spark to say
        return False
    return facts.provider == "parquet" and read_stats(spark, facts).frame is not None


def _scans(spark: SparkSession, sql: str, asked: Any, places: Sequence[Mention]) -> dict[int, list[Scan]]:
    """Return what the query reads of each mention, in a text where each has a mark that Spark carries along."""
    text = _filtered(sql, {place: mark(number) for number, place in enumerate(places)})
    marked = executed(spark, query_of(spark, sql_parser(spark).parsePlan(text)))
    plain = executed(spark, asked)
    if not marked.analyzed().schema().equals(plain.analyzed().schema()):
        msg = "it does not give the same columns where its tables are filtered"
        raise UnfitError(msg)
    if cached_parts(spark, plain) > cached_parts(spark, marked):
        msg = "a part of it is in Spark's cache"
        raise UnfitError(msg)
    return scans(marked.optimizedPlan())


def _filtered(sql: str, tests: Mapping[Mention, str]) -> str:
    """Return a text that reads, where a table is mentioned, those of its rows for which a test holds."""
    for place in sorted(tests, key=lambda place: place.start, reverse=True):
        name = "" if place.is_named else f" AS {quote_name(place.parts[-1])}"
        table = sql[place.start : place.stop]
        sql = f"{sql[: place.start]}(SELECT * FROM {table} WHERE ({tests[place]})){name}{sql[place.stop :]}"
    return sql


def _plans(spark: SparkSession, table: str, found: Sequence[Scan]) -> list[Plan] | str:
    """Return how each read of a mention leaves files out; a text that says why, if one of them leaves out none."""
    if not found:
        return "no row of it is used"
    plans: list[Plan] = []
    for scan in found:
        plan = _plan(spark, table, scan)
        if isinstance(plan, str):
            return plan
        plans.append(plan)
    return plans


def _plan(spark: SparkSession, table: str, scan: Scan) -> Plan | str:
    texts = scan.texts()
    if not texts:
        return "all of its rows are used"
    try:
        plan = make_plan(spark, table, " AND ".join(texts))
    except ZorderError:  # one of them has no text that Spark reads back
        frame = spark.table(table)
        texts = [text for text in texts if _is_valid(frame, text)]
        if not texts:
            return "what it asks of the rows has no text that Spark reads back"
        plan = make_plan(spark, table, " AND ".join(texts))
    if plan.exclusion is None:
        return plan.reason
    if not is_weaker(spark, plan.accepted, scan):
        return "Spark does not confirm the text of what it asks of the rows"
    return plan


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
