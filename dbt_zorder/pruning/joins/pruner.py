"""Exclude the files of a statement's scans that hold no row which its joins keep."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.humanize import counted
from dbt_zorder.pruning.files.column_bounds import ColumnBounds, read_bounds
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.joins.keys import Keys, is_compared
from dbt_zorder.pruning.joins.reducers import Reducer, find_reducers
from dbt_zorder.pruning.joins.sides import Side
from dbt_zorder.pruning.plans.exclusion import PlanExclusion
from dbt_zorder.pruning.plans.tree import METADATA, PlanNode, PlanTrees
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
class _Reduction:
    """A reducer with its side.

    Attributes:
        op: operator of the comparison.
        side: side whose rows have the keys.
        place: index of the key in its output.
        is_selective: whether the side may lack keys by itself.
        within: reductions of the side's own rows, by the index of the column.
    """

    op: str
    side: Side
    place: int
    is_selective: bool
    within: tuple[tuple[int, _Reduction], ...]


class JoinPruner:
    """Join pruning of one statement; each side is run once, however often the statement names it."""

    def __init__(self, spark: SparkSession, plans: PlanTrees) -> None:
        self._spark = spark
        self._plans = plans
        self._sides: list[Side] = []
        self._by_path: dict[tuple[int, tuple[int, ...]], Side] = {}

    def exclude(self, relation: Any, size: int, stats: Stats, columns: Mapping[str, Column]) -> PlanExclusion:
        """Return the files of a scan without a row that joins keep. Never raises.

        Args:
            relation: leaf of the plan.
            size: bytes of the table.
            stats: the table's statistics.
            columns: columns whose statistics may be used, by name.
        """
        found = PlanExclusion()
        try:
            asked = [
                (name, bounds, self._with(root, reducer))
                for name, reducer, root in self._reducers.get(int(relation.output().head().exprId().id()), ())
                if name in columns and is_compared(columns[name].data_type) and _may_lack_keys(reducer)
                if (bounds := read_bounds(stats, columns[name])).share_apart >= APART_AT_LEAST
            ]
            for name, bounds, reduction in asked:
                self._apply(found, bounds, name, reduction, size)
        except Exception as exc:  # any doubt is a full read
            _LOG.debug("joins exclude no file: %s", first_line(exc))
            return PlanExclusion()
        return found

    @cached_property
    def _reducers(self) -> dict[int, list[tuple[str, Reducer, int]]]:
        """Return the reducers of each scan with their column and the number of their plan, by the first attribute."""
        found: dict[int, list[tuple[str, Reducer, int]]] = {}
        for number, tree in enumerate(self._plans.trees):
            for first, reducers in find_reducers(tree).items():
                # two plans that name two scans alike leave open which one is meant
                found[first] = [] if first in found else [(name, one, number) for name, one in reducers]
        return found

    def _with(self, root: int, reducer: Reducer) -> _Reduction:
        """Return a reducer with its side, and those within it."""
        node = reducer.side
        key = (root, node.path)
        if key not in self._by_path:
            self._by_path[key] = self._side(self._plans.in_jvm(root, node), node)
        side, output = self._by_path[key], node.output
        within = tuple((output.index(id_), self._with(root, one)) for id_, one in reducer.within if _may_lack_keys(one))
        place = output.index(reducer.attribute)
        side.wanted.update([place, *(at for at, _ in within)])
        return _Reduction(reducer.op, side, place, _is_selective(node), within)

    def _side(self, plan: Any, node: PlanNode) -> Side:
        for one in self._sides:
            if one.plan.sameResult(plan):
                return one
        self._sides.append(Side(plan, node))
        return self._sides[-1]

    def _apply(self, found: PlanExclusion, bounds: ColumnBounds, column: str, reduction: _Reduction, size: int) -> None:
        pins: dict[str, str] = {}
        keys = self._keys(reduction, size, pins)
        out = {} if keys is None else bounds.without(reduction.op, keys)
        if keys is None or not out:
            return
        found.files |= out
        found.pins |= pins
        number = counted(len(keys.values), "key") if keys.complete else "a range of keys"
        found.rules.append(f"join with {_tables(reduction.side.plan)} on {column} ({number})")

    def _keys(self, reduction: _Reduction, size: int, pins: dict[str, str]) -> Keys | None:
        """Return the keys of a reduction, and add the files that they depend on; None if it has none or costs too much.

        Args:
            reduction: reduction of a scan, or of a side.
            size: bytes of the table that is scanned.
            pins: files of the sides that were run.
        """
        side = reduction.side
        if side.pinned is None or side.pinned[1] > min(SIDE_BYTES_AT_MOST, SIDE_SHARE_AT_MOST * size):
            return None
        tests: list[tuple[int, str, Keys]] = []
        for place, one in reduction.within:
            keys = self._keys(one, size, pins)
            if keys is not None:
                tests.append((place, one.op, keys))
        if not (reduction.is_selective or tests):
            return None
        pins.update(side.pinned[0])
        return side.keys(self._spark, reduction.place, tests)


def _may_lack_keys(reducer: Reducer) -> bool:
    return _is_selective(reducer.side) or any(_may_lack_keys(one) for _, one in reducer.within)


def _is_selective(side: PlanNode) -> bool:
    """Return whether a side may lack keys: it has a test, a limit, or rows in the statement itself."""
    for node in side.walk():
        if node.kind in ("LocalRelation", "GlobalLimit", "Range"):
            return True
        if node.kind == "Aggregate" and not node.expressions("groupingExpressions"):
            return True
        if node.kind == "Filter":
            terms = node.expressions("condition")[0].conjuncts()
            # a test of _metadata is the mark of a scan
            if any(term.kind not in _NOT_SELECTIVE and not term.refers_to(METADATA) for term in terms):
                return True
    return False


def _tables(plan: Any) -> str:
    """Return the names of the tables that a plan reads."""
    found = dict.fromkeys(
        str(leaf.catalogTable().get().identifier().table())
        for leaf in items(plan.collectLeaves())
        if leaf.getClass().getSimpleName() == "LogicalRelation" and leaf.catalogTable().isDefined()
    )
    return ", ".join(found) or "rows of the statement"
