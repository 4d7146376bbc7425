"""Exclude the files of a statement's scans that hold no row which its joins keep."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.humanize import counted
from dbt_zorder.pruning.files.column_bounds import ColumnBounds, FileBounds, read_bounds
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.joins.keys import Keys, collect_keys, is_compared
from dbt_zorder.pruning.joins.pins import Pins, are_same, pin_leaves
from dbt_zorder.pruning.joins.plan_tree import PlanNode, node_at, read_tree
from dbt_zorder.pruning.joins.reducers import Reducer, find_reducers
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.spark.jvm import items
from dbt_zorder.spark.messages import first_line

_LOG = logging.getLogger("dbt_zorder")

APART_AT_LEAST = 0.1
"""Minimum share of pairs of files that do not overlap in a column, for its keys to be worth reading."""

SIDE_BYTES_AT_MOST = 64 << 20
"""Maximum size of the files of a side that is run for its keys."""

SIDE_SHARE_AT_MOST = 0.5
"""Maximum size of a side as a share of the table's that it reduces."""

_NOT_SELECTIVE = frozenset({"IsNotNull", "BloomFilterMightContain"})


@dataclass(frozen=True)
class JoinRule:
    """Effect of one side of a join on a scan.

    Attributes:
        column: column of the scan that is compared.
        op: operator of the comparison.
        tables: tables of the side.
        keys: number of distinct keys; None if only their range was read.
        files: number of files that they exclude.
    """

    column: str
    op: str
    tables: str
    keys: int | None
    files: int

    def __str__(self) -> str:
        keys = "a range of keys" if self.keys is None else counted(self.keys, "key")
        return f"join with {self.tables} on {self.column} ({keys})"


@dataclass
class JoinExclusion:
    """Files of a scan without a row that joins keep.

    Attributes:
        files: excluded files by path.
        rules: effect of each side.
        pins: files of the sides, which the statement must read.
    """

    files: dict[str, FileBounds] = field(default_factory=dict)
    rules: list[JoinRule] = field(default_factory=list)
    pins: dict[str, str] = field(default_factory=dict)


class _Rows:
    """Rows of a side of a join, which are read at most once."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.wanted: set[int] = set()
        self._keys: dict[int, Keys | None] | None = None

    @cached_property
    def pinned(self) -> tuple[Pins, int] | None:
        """Return the files of the side and their bytes; None if they cannot be pinned."""
        return pin_leaves(self.plan)

    def keys(self, spark: SparkSession, place: int) -> Keys | None:
        """Return the keys at a place of the plan's output, which is in ``wanted``."""
        if self._keys is None:
            places = sorted(self.wanted)
            self._keys = dict(zip(places, collect_keys(spark, self.plan, places), strict=True))
        return self._keys[place]


@dataclass(frozen=True)
class _Reduction:
    """A reducer of a column of a scan.

    Attributes:
        column: name of the scan's column.
        op: operator of the comparison.
        rows: rows of the other side.
        place: index of the key in them.
    """

    column: str
    op: str
    rows: _Rows
    place: int


class JoinPruner:
    """Join pruning of one statement; each side is run once, however often the statement names it."""

    def __init__(self, spark: SparkSession, optimized: Any) -> None:
        self._spark = spark
        self._optimized = optimized
        self._sides: list[_Rows] = []

    def exclude(self, relation: Any, size: int, stats: Stats, columns: Mapping[str, Column]) -> JoinExclusion:
        """Return the files of a scan without a row that joins keep. Never raises.

        Args:
            relation: leaf of the plan.
            size: bytes of the table.
            stats: the table's statistics.
            columns: columns whose statistics may be used, by name.
        """
        found = JoinExclusion()
        try:
            for one in self._reductions.get(int(relation.output().head().exprId().id()), ()):
                column = columns.get(one.column)
                if column is not None and is_compared(column.data_type):
                    self._apply(found, read_bounds(stats, column), one, size)
        except Exception as exc:  # any doubt is a full read
            _LOG.debug("joins exclude no file: %s", first_line(exc))
            return JoinExclusion()
        return found

    @cached_property
    def _reductions(self) -> dict[int, list[_Reduction]]:
        """Return the reductions of each scan, by its first attribute."""
        found: dict[int, list[_Reduction]] = {}
        for root in (self._optimized, *items(self._optimized.subqueriesAll())):
            sides: dict[tuple[int, ...], _Rows | None] = {}
            for first, reducers in find_reducers(read_tree(root)).items():
                # two plans that name two scans alike leave open which one is meant
                found[first] = [] if first in found else list(self._with_rows(root, reducers, sides))
        return found

    def _with_rows(
        self, root: Any, reducers: Sequence[tuple[str, Reducer]], sides: dict[tuple[int, ...], _Rows | None]
    ) -> Iterator[_Reduction]:
        for column, reducer in reducers:
            node = reducer.side
            if node.path not in sides:
                sides[node.path] = self._rows(node_at(root, node.path)) if _is_selective(node) else None
            rows = sides[node.path]
            if rows is not None:
                place = node.output().index(reducer.attribute)
                rows.wanted.add(place)
                yield _Reduction(column, reducer.op, rows, place)

    def _rows(self, plan: Any) -> _Rows:
        for one in self._sides:
            if one.plan.sameResult(plan):
                return one
        self._sides.append(_Rows(plan))
        return self._sides[-1]

    def _apply(self, found: JoinExclusion, bounds: ColumnBounds, one: _Reduction, size: int) -> None:
        if bounds.share_apart < APART_AT_LEAST or one.rows.pinned is None:
            return
        pins, its_size = one.rows.pinned
        if its_size > min(SIDE_BYTES_AT_MOST, SIDE_SHARE_AT_MOST * size):
            return
        keys = one.rows.keys(self._spark, one.place)
        out = {} if keys is None else bounds.without(one.op, keys)
        if keys is None or not out:
            return
        found.files |= out
        found.pins |= pins
        number = len(keys.values) if keys.complete else None
        found.rules.append(JoinRule(one.column, one.op, _tables(one.rows.plan), number, len(out)))


def is_pinned(pins: Pins, analyzed: Any) -> bool:
    """Return whether an analyzed statement joins the rows whose keys were read."""
    return not pins or are_same(pins, analyzed)


def _is_selective(side: PlanNode) -> bool:
    """Return whether a side may lack keys: it has a test, a limit, or rows in the statement itself."""
    for node in side.walk():
        if node.kind in ("LocalRelation", "GlobalLimit", "Range"):
            return True
        if node.kind == "Aggregate" and not node.expressions("groupingExpressions"):
            return True
        if node.kind == "Filter":
            terms = node.expressions("condition")[0].conjuncts()
            if any(term.kind not in _NOT_SELECTIVE and not _is_mark(term) for term in terms):
                return True
    return False


def _is_mark(term: Any) -> bool:
    """Return whether a test asks for the size of a file, as the marks of scans do."""
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if part.fields.get("name") == "_metadata":
            return True
        waiting.extend(part.children)
    return False


def _tables(plan: Any) -> str:
    """Return the names of the tables that a plan reads."""
    found = dict.fromkeys(
        str(leaf.catalogTable().get().identifier().table())
        for leaf in items(plan.collectLeaves())
        if leaf.nodeName().startswith("Relation") or leaf.getClass().getSimpleName() == "LogicalRelation"
        if leaf.catalogTable().isDefined()
    )
    return ", ".join(found) or "rows of the statement"
