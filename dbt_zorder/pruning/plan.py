"""Plan a pruned read: all steps from a table and a predicate to the excluded files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.pruning.condition.clock_bounds import with_clock_bounds
from dbt_zorder.pruning.condition.condition import All, Any, Atom, Unknown, can_exclude, leaves
from dbt_zorder.pruning.condition.constants import RANDOM_FUNCTIONS, REPEATABLE
from dbt_zorder.pruning.condition.times import depends_on_zone
from dbt_zorder.pruning.condition.translate import Translator
from dbt_zorder.pruning.condition.types import Rules
from dbt_zorder.pruning.files.evaluate import Decision, decide, evaluated_sql, stats_names
from dbt_zorder.pruning.files.exclusion import exclude, worthwhile
from dbt_zorder.pruning.files.session_settings import (
    PROBES,
    ZONE_SQL,
    Settings,
    bind_to_settings,
    read_settings,
    setting_is_on,
)
from dbt_zorder.pruning.files.stats_source import read_stats
from dbt_zorder.pruning.files.table_facts import TableFacts, quoted, read_facts
from dbt_zorder.pruning.files.usable_columns import unusable_columns
from dbt_zorder.pruning.predicate.confirm import filter_rows, is_confirmed, read_types
from dbt_zorder.pruning.predicate.functions import (
    called_functions,
    hidden_functions,
    nondeterminism_reason,
    own_functions_in,
)
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import comment_continues, contains_query, parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import Node
from dbt_zorder.spark.columns import case_sensitive, fold_case
from dbt_zorder.spark.conf import DATETIME_TO_STRING, ESCAPED_LITERALS, is_on
from dbt_zorder.spark.jvm import active
from dbt_zorder.spark.messages import first_line, unlogged
from dbt_zorder.stats.table_state import FORMATS

log = logging.getLogger("dbt_zorder")
_METADATA = "_metadata"
VARIABLE = "${"
SUBSTITUTED = "Spark replaces ${...} in the predicate by a setting's value, which may be another when the query runs"
_HIDES = "this session has a function {}() of its own, which hides Spark's"


@dataclass(frozen=True)
class Plan:
    """Plan of the answer to a predicate.

    Attributes:
        table: the table itself, unfiltered.
        accepted: the table filtered by the user's predicate, without pruning.
        facts: facts of the table.
        condition: condition on statistics; None if an earlier step gave up.
        decision: result of the statistics; None if they were not evaluated.
        exclusion: SQL that excludes files, or None for a full read.
        pruned: ``accepted`` without those files, or None for a full read.
        reason: why every file is read; empty if files are excluded.
        skipped_by: the file format, if it skips files by its own statistics and for every reader. ``exclusion`` is then
            None, and ``decision``, if requested, is an estimate of the format's effect.
        warnings: further facts that the user needs.
        level: log level of the reason for a full read. Users who request pruning see it at once. For automatic pruning,
            only ``--debug`` shows it.
    """

    table: DataFrame
    accepted: DataFrame
    facts: TableFacts
    condition: Atom | Unknown | All | Any | None = None
    decision: Decision | None = None
    exclusion: str | None = None
    pruned: DataFrame | None = None
    reason: str = ""
    skipped_by: str = ""
    warnings: list[str] = field(default_factory=list)
    level: int = logging.INFO

    @property
    def rows(self) -> DataFrame:
        """Return the answer: pruned if possible."""
        return self.accepted if self.pruned is None else self.pruned


def make_plan(
    spark: SparkSession,
    table: str,
    predicate: str,
    *,
    alias: str | None = None,
    each: bool = False,
    zoned: bool = False,
    frame: DataFrame | None = None,
) -> Plan:
    """Return the plan to answer ``predicate`` on ``table``.

    Args:
        spark: reader's session.
        table: table name, as for ``scan``.
        predicate: boolean SQL expression, as for ``scan``.
        alias: name that may qualify columns.
        each: whether to report every file in the statistics.
        zoned: whether a constant may depend on the time zone although its text no longer shows it.
        frame: the table, if Spark has just resolved it.

    Raises:
        PredicateError, ColumnError: the predicate is wrong. Pruning itself raises nothing else; an unknown table raises
            Spark's own error.
    """
    with active(spark), unlogged():  # an error that is raised needs no log entry
        return _plan(spark, table, predicate, alias, each, zoned, frame)


def _plan(
    spark: SparkSession,
    table: str,
    predicate: str,
    alias: str | None,
    each: bool,
    zoned: bool,
    frame: DataFrame | None,
) -> Plan:
    parsed = parse(predicate)
    frame = spark.table(quoted(table)) if frame is None else frame
    facts = read_facts(spark, table, frame)
    if alias is not None:
        frame = frame.alias(alias)
        facts = replace(facts, qualifiers=((alias,),))
    settings = read_settings(spark)
    has_query = parsed is not None and contains_query(parsed)
    accepted = filter_rows(frame, predicate, has_query=has_query)
    plan = Plan(frame, accepted, facts, level=logging.DEBUG if zoned else logging.INFO)
    try:
        if VARIABLE in predicate:
            return _full_read(plan, SUBSTITUTED)
        if parsed is None:
            return _full_read(plan, "the parser does not have this form of predicate, though Spark does")
        if has_query:
            return _full_read(plan, "the predicate contains a subquery, which runs only with the query")
        if comment_continues(predicate):
            return _full_read(plan, "a comment in the predicate ends in a backslash, where Spark's comments go on")
        calls = called_functions(parsed)
        hidden = hidden_functions(spark, REPEATABLE.union(RANDOM_FUNCTIONS).intersection(calls))
        chance = nondeterminism_reason(accepted, parsed, hidden)
        if chance:
            return _full_read(plan, chance)
        names = Names(frame.schema, case_sensitive(spark), facts.qualifiers, hidden)
        plan = _pruned(spark, plan, read(parsed, names), predicate, settings, each, zoned)
        if plan.exclusion is not None and read_settings(spark) != settings:
            return _full_read(
                _with(plan, exclusion=None, pruned=None), "another thread changed Spark's settings meanwhile"
            )
        return plan
    except ZorderError:
        raise
    except Exception as exc:  # any doubt is a full read
        return _full_read(plan, f"pruning failed: {first_line(exc)}")


def _pruned(
    spark: SparkSession, plan: Plan, tree: Node, predicate: str, settings: Settings, each: bool, zoned: bool
) -> Plan:
    if setting_is_on(settings, ESCAPED_LITERALS):
        return _full_read(plan, f"{ESCAPED_LITERALS} is on, so strings are not what they look like")
    sensitive = case_sensitive(spark)
    if any(fold_case(name, sensitive=sensitive) == _METADATA for name in plan.table.columns):
        return _full_read(plan, "the table has a column named _metadata, which hides Spark's own")
    if plan.facts.provider in FORMATS:
        plan = _with(plan, skipped_by=plan.facts.provider)
        if not each:
            _log_once(plan, f"{plan.skipped_by} skips files by its own statistics, so a plain filter is enough")
            return plan
    stats = read_stats(spark, plan.facts, tree.columns())
    if stats.frame is None:
        return _full_read(plan, stats.reason)
    if not is_confirmed(plan.table, plan.accepted, tree, predicate):
        return _full_read(plan, "Spark does not confirm that the predicate was understood")
    bounded = with_clock_bounds(spark, tree, plan.table.columns)
    zoned = zoned or bounded != tree  # the present is another day elsewhere
    tree = bounded
    covered = stats.covered(tree)
    unusable = {} if plan.skipped_by else unusable_columns(spark, covered, plan.facts, plan.table.schema)
    names = stats_names([column for column in covered if column not in unusable])
    rules = Rules(setting_is_on(settings, DATETIME_TO_STRING))
    types = read_types(spark, tree)
    translator = Translator(names, types, rules, unusable=unusable)
    condition = translator.translate(tree)
    plan = _with(plan, condition=condition)
    if not can_exclude(condition):
        unknown = next((leaf for leaf in leaves(condition) if isinstance(leaf, Unknown)), None)
        return _full_read(
            plan, f"{unknown.text}: {unknown.reason}" if unknown else "nothing in the predicate excludes a file"
        )
    ours = own_functions_in([*evaluated_sql(stats, condition, names), *PROBES, ZONE_SQL])
    not_sparks = hidden_functions(spark, ours)
    if not_sparks:
        return _full_read(plan, _HIDES.format(min(not_sparks)))
    try:
        decision = decide(stats, condition, names, each=each)
    except Exception:  # most likely a cast that fails under ANSI for one file's value: retry without functions
        condition = replace(translator, single_values=False, functions=False).translate(tree)
        decision = decide(stats, condition, names, each=each)
    if plan.skipped_by:
        return _with(plan, condition=condition, decision=decision)
    if decision.excluded and not worthwhile(decision.rows, decision.kept_rows):
        return _with(plan, condition=condition, decision=_all_kept(decision), reason="too few rows could be left out")
    exclusion = exclude(decision.excluded, decision.kept_paths)
    sql = (
        bind_to_settings(spark, exclusion.sql, settings, zoned=zoned or depends_on_zone(tree))
        if exclusion.sql
        else None
    )
    plan = _with(plan, condition=condition, decision=replace(decision, excluded=exclusion.files), exclusion=sql)
    if sql is not None:
        not_sparks = hidden_functions(spark, own_functions_in([sql]) - ours)
        if not_sparks:
            return _full_read(_with(plan, decision=_all_kept(decision), exclusion=None), _HIDES.format(min(not_sparks)))
        # If the table is not a bare relation, as with CHAR columns, `_metadata` does not resolve. Find that out here.
        # Spark moves no test below one that is not deterministic, so this test comes first.
        pruned = filter_rows(plan.table.where(sql), predicate)
        plan = _with(plan, pruned=pruned)
    left = len(decision.excluded) - len(exclusion.files)
    if left:
        plan.warnings.append(f"{left} files that cannot match are read: their names have no numbers to exclude them by")
    if is_on(spark, "spark.sql.files.ignoreMissingFiles"):
        plan.warnings.append("spark.sql.files.ignoreMissingFiles is on: a data file that was lost is not reported")
        _log_once(plan, plan.warnings[-1])
    return plan if plan.exclusion else _with(plan, reason="every file may hold a matching row")


def bind_exclusion(spark: SparkSession, files: Sequence[tuple[str, int]], settings: Settings) -> str:
    """Return the filter that excludes files, by path and size in bytes, under these settings and in this time zone.

    Raises:
        ZorderError: the session hides a function that the filter needs.
    """
    sql = exclude(files).sql
    assert sql is not None
    bound = bind_to_settings(spark, sql, settings, zoned=True)
    not_sparks = hidden_functions(spark, own_functions_in([bound, *PROBES, ZONE_SQL]))
    if not_sparks:
        raise ZorderError(_HIDES.format(min(not_sparks)))
    return bound


def _all_kept(decision: Decision) -> Decision:
    return replace(decision, excluded=(), kept_files=decision.files, kept_rows=decision.rows, kept_bytes=decision.bytes)


def _full_read(plan: Plan, reason: str) -> Plan:
    if not plan.skipped_by:
        _log_once(plan, f"all files are read: {reason}")
    return _with(plan, reason=reason)


def _log_once(plan: Plan, message: str) -> None:
    _log(plan.level, plan.facts.sql, message)


@lru_cache(maxsize=1_000)  # messages that a process remembers, to log each once
def _log(level: int, table: str, message: str) -> None:
    log.log(level, "%s: %s", table, message)


def _with(plan: Plan, **changes: object) -> Plan:
    return replace(plan, **changes)  # type: ignore[arg-type]
