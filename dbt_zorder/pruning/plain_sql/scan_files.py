"""Choose the files of one scan of a statement: by its own tests, and by the joins or the limit above it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.pruning.files.column_bounds import Totals, read_totals
from dbt_zorder.pruning.files.exclusion import worthwhile
from dbt_zorder.pruning.files.session_settings import Settings
from dbt_zorder.pruning.files.stats_source import Stats, read_stats
from dbt_zorder.pruning.files.table_facts import TableFacts, read_facts, read_location
from dbt_zorder.pruning.files.usable_columns import unusable_columns
from dbt_zorder.pruning.joins.pruner import JoinPruner
from dbt_zorder.pruning.plain_sql.catalyst import Scan, is_weaker
from dbt_zorder.pruning.plan import Plan, bind_exclusion, make_plan
from dbt_zorder.pruning.plans.exclusion import PlanExclusion
from dbt_zorder.pruning.plans.pins import file_index, leaves
from dbt_zorder.pruning.plans.tree import PlanTrees
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.pruning.top_rows.pruner import TopPruner
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.files import list_versions
from dbt_zorder.spark.jvm import jvm_of
from dbt_zorder.spark.local_disk import is_known_here
from dbt_zorder.stats.store import stats_path

_CHARACTERS_AT_MOST = 50_000

_SECONDS_A_FILE = {True: 0.001, False: 0.02}
"""Time to open a file: on this machine's disk, and elsewhere, where it needs at least one request."""

_BYTES_A_SECOND = 400e6
"""Bytes of Parquet that two processors decode in a second."""


@dataclass(frozen=True)
class Table:
    """A table with statistics that a statement mentions.

    Attributes:
        facts: facts of the table.
        frame: the table as Spark resolved it when the facts were read.
        stats: its statistics.
    """

    facts: TableFacts
    frame: DataFrame
    stats: Stats

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Return the top-level columns whose statistics prove something to the session, by name."""
        spark = self.frame.sparkSession
        names = Names(self.frame.schema, case_sensitive(spark))
        found = [names.resolve([name]) for name in self.frame.columns]
        covered = [one for one in found if isinstance(one, Column) and one.plain and self.stats.covers(one)]
        unusable = unusable_columns(spark, covered, self.facts, self.frame.schema)
        return {one.path[0]: one for one in covered if one not in unusable}

    @property
    def totals(self) -> Totals:
        """Return the totals over all files in the statistics."""
        return read_totals(self.stats)


@dataclass(frozen=True)
class ScanFiles:
    """Files that a scan reads.

    Attributes:
        test: SQL that excludes the others.
        excluded: size in bytes of each file that is excluded, by path.
        by_tests: number of files that the scan's own tests exclude.
        by_plan: files that the joins or the limit above the scan exclude.
    """

    test: str
    excluded: Mapping[str, int] = field(repr=False)
    by_tests: int
    by_plan: PlanExclusion = field(repr=False)


class Chooser:
    """Choice of the files of each scan of one statement."""

    def __init__(self, spark: SparkSession, settings: Settings, plans: PlanTrees | None) -> None:
        """Make a choice for one statement.

        Args:
            spark: session in this process.
            settings: settings under which the statement runs.
            plans: plans of the statement, if it runs at once: then joins and limits exclude files, too.
        """
        self._spark = spark
        self._settings = settings
        self._joins = None if plans is None else JoinPruner(spark, plans)
        self._limits = None if plans is None else TopPruner(spark, plans)
        self._plans: dict[tuple[str, str], Plan] = {}

    def choose(self, table: Table, scan: Scan) -> ScanFiles | str:
        """Return the files of a scan, or why all are read."""
        plan = self._by_tests(table, scan)
        above = PlanExclusion()
        if self._joins is not None:
            above = self._joins.exclude(scan.relation, table.totals.bytes, table.stats, table.columns)
        decision = None if isinstance(plan, str) or plan.exclusion is None else plan.decision
        excluded = dict(decision.excluded) if decision is not None else {}
        if self._limits is not None and not above.files:  # a limit ends what joins above it ask for
            limited = self._limits.exclude(scan.relation, scan.tests, table.stats, table.columns, excluded)
            above = limited if limited.files or limited.reason else above
        more = {path: one for path, one in above.files.items() if path not in excluded}
        if not more:
            if isinstance(plan, str):
                return above.reason or plan
            if plan.exclusion is None:
                return above.reason or plan.reason
            return ScanFiles(plan.exclusion, excluded, len(excluded), PlanExclusion())
        rows = table.totals.rows
        kept = (decision.kept_rows if decision is not None else rows) - sum(one.rows for one in more.values())
        if not worthwhile(rows, kept):
            return "too few rows could be left out"
        files = excluded | {path: one.size for path, one in more.items()}
        test = bind_exclusion(self._spark, list(files.items()), self._settings)
        return ScanFiles(test, files, len(excluded), above)

    def _by_tests(self, table: Table, scan: Scan) -> Plan | str:
        texts = scan.texts()
        if not texts:
            return "all of its rows are used"
        predicate = " AND ".join(texts)
        if len(predicate) > _CHARACTERS_AT_MOST:
            return "its predicate is too long a text"
        name = table.facts.sql
        if (name, predicate) not in self._plans:
            self._plans[name, predicate] = _plan(self._spark, table, texts)
        plan = self._plans[name, predicate]
        if plan.exclusion is not None and not is_weaker(self._spark, plan.accepted, scan):
            return "Spark does not confirm the text of its predicate"
        return plan


def _plan(spark: SparkSession, table: Table, texts: Sequence[str]) -> Plan:
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


@dataclass
class Reads:
    """Reads of tables of one name in a query.

    Attributes:
        seconds: time to read all their files, as often as the query does.
        relations: leaves of the query's plan.
    """

    seconds: float = 0.0
    relations: list[Any] = field(default_factory=list)


def tables_with_stats(spark: SparkSession, analyzed: Any) -> dict[str, Reads]:
    """Return the reads of each table with statistics in an analyzed query.

    Names are in lower case and without their schemas. Another table of the same name is included.
    """
    found: dict[str, Reads] = {}
    of_tables: dict[str, float | None] = {}
    for leaf in leaves(analyzed):
        if leaf.getClass().getSimpleName() == "LogicalRelation" and leaf.catalogTable().isDefined():
            entry = leaf.catalogTable().get()
            table = str(entry.identifier().unquotedString())
            if table not in of_tables:
                location = read_location(jvm_of(spark), entry)
                has_stats = bool(list_versions(spark, stats_path(location)))
                of_tables[table] = _reading_seconds(spark, leaf, location) if has_stats else None
            seconds = of_tables[table]
            if seconds is not None:
                reads = found.setdefault(str(entry.identifier().table()).lower(), Reads())
                reads.seconds += seconds
                reads.relations.append(leaf)
    return found


def _reading_seconds(spark: SparkSession, relation: Any, location: str) -> float:
    """Return the time to read all files of a table; infinite if Spark has not yet listed them."""
    index = file_index(relation)
    if index is None:
        return math.inf
    a_file = _SECONDS_A_FILE[is_known_here(spark, location)]
    return float(len(index.inputFiles()) * a_file + index.sizeInBytes() / _BYTES_A_SECOND)


def table_with_stats(spark: SparkSession, name: str) -> Table | None:
    """Return a table with its statistics; None if Spark finds no such table, or if it has no statistics."""
    try:
        frame = spark.table(name)
        facts = read_facts(spark, name, frame)
    except Exception:  # no such table, which Spark reports
        return None
    if facts.provider != "parquet":
        return None
    stats = read_stats(spark, facts)
    return None if stats.frame is None else Table(facts, frame, stats)
