"""Run sides of joins for their keys, and keep the rows of those whose files and settings are the same as before."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.pruning.joins.keys import Keys, SideRows, collect_rows
from dbt_zorder.pruning.plans.pins import Pins, Versions, pin_leaves, read_versions
from dbt_zorder.pruning.plans.tree import PlanNode
from dbt_zorder.spark.jvm import class_named, jvm_of

VALUES_AT_MOST = 1_000_000
"""Maximum number of values that the process keeps of sides; the least recently used are dropped first."""

_SIDES_AT_MOST = 200

_BY_ARRIVAL = frozenset(
    {"AnyValue", "CollectList", "CollectSet", "First", "Lag", "Last", "Lead", "ListAgg", "MaxBy", "MinBy", "Mode"}
    | {"NTile", "NthValue", "RowNumber"}
)
"""Functions whose result depends on which of equal rows comes first."""


@dataclass(frozen=True)
class _Kept:
    """Rows of a side that was run.

    Attributes:
        plan: the side.
        settings: copy of the session's settings in the JVM.
        versions: files that it read.
        places: indexes of the columns in its output.
        rows: their values.
    """

    plan: Any
    settings: Any
    versions: Versions
    places: Sequence[int]
    rows: SideRows


_LOCK = threading.Lock()
_kept: OrderedDict[tuple[SparkSession, bytes, int], _Kept] = OrderedDict()
"""Rows by session, a digest of the files that Spark has listed, and the hash of the plan."""


class Side:
    """A side of a join, which is run once, unless another scan wants other columns of it.

    Attributes:
        plan: plan of the JVM.
        wanted: indexes of the columns in its output that reducers ask for.
    """

    def __init__(self, plan: Any, node: PlanNode) -> None:
        """Make a side of a plan of the JVM, and the same plan as a tree."""
        self.plan = plan
        self.wanted: set[int] = set()
        self._node = node
        self._read: tuple[Sequence[int], SideRows] | None = None

    @cached_property
    def pinned(self) -> tuple[Pins, int] | None:
        """Return the files of the side and their bytes; None if another run of it may give other rows."""
        return pin_leaves(self.plan) if self.plan.deterministic() and _is_repeatable(self._node) else None

    def keys(self, spark: SparkSession, place: int, tests: Sequence[tuple[int, str, Keys]]) -> Keys | None:
        """Return the keys at a place of the plan's output, which is in ``wanted``, of the rows that pass tests."""
        if self._read is None or not self.wanted.issubset(self._read[0]):
            self._read = self._rows(spark, sorted(self.wanted))
        places, rows = self._read
        return rows.keys(places.index(place), [(places.index(at), op, keys) for at, op, keys in tests])

    def _rows(self, spark: SparkSession, wanted: Sequence[int]) -> tuple[Sequence[int], SideRows]:
        assert self.pinned is not None
        pins = self.pinned[0]
        versions = None if _calls_others(self._node) else read_versions(spark, pins)
        if versions is None:
            return wanted, collect_rows(spark, self.plan, wanted)
        key = (spark, sha256(repr(sorted(pins.items())).encode()).digest(), int(self.plan.semanticHash()))
        settings: Any = spark._jsparkSession.sessionState().conf().settings()
        with _LOCK:
            kept = _kept.get(key)
            if kept is not None:
                _kept.move_to_end(key)
        if (
            kept is not None
            and kept.versions == versions
            and set(wanted).issubset(kept.places)
            and kept.settings.equals(settings)
            and kept.plan.sameResult(self.plan)
        ):
            return kept.places, kept.rows
        before = class_named(jvm_of(spark), "java.util.HashMap")(settings)
        rows = collect_rows(spark, self.plan, wanted)
        if before.equals(settings) and read_versions(spark, pins) == versions:
            _keep(key, _Kept(self.plan, before, versions, wanted, rows))
        return wanted, rows


def _keep(key: tuple[SparkSession, bytes, int], found: _Kept) -> None:
    """Keep the rows of a side, and drop those of stopped sessions and the oldest beyond the limits."""
    with _LOCK:
        _kept[key] = found
        for other in [one for one in _kept if one[0] is not key[0] and one[0].sparkContext._jsc is None]:
            del _kept[other]
        while len(_kept) > _SIDES_AT_MOST or sum(one.rows.size for one in _kept.values()) > VALUES_AT_MOST:
            _kept.popitem(last=False)


def _is_repeatable(side: PlanNode) -> bool:
    """Return whether two runs of a side on the same files give the same rows, whatever comes first."""
    for node in side.walk():
        if node.kind in ("GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample") and not _limits_all_columns(node):
            return False
        if any(part.kind in _BY_ARRIVAL for one in node.all_expressions() for part in one.walk()):
            return False
    return True


def _limits_all_columns(limit: PlanNode) -> bool:
    """Return whether a limit is over rows that are sorted by all of their columns, so that equal rows are the same."""
    below = limit
    while below.kind in ("GlobalLimit", "LocalLimit", "Offset", "Project"):
        below = below.children[0]
    if below.kind != "Sort" or below.fields.get("global") is not True:
        return False
    by = {order.children[0].attribute for order in below.expressions("order")}
    return bool(by.issuperset(below.output))


def _calls_others(side: PlanNode) -> bool:
    """Return whether a side calls functions that are not Spark's, or contains a subquery, whose files are elsewhere."""
    return any(
        "UDF" in part.kind or "Invoke" in part.kind or "Subquery" in part.kind
        for node in side.walk()
        for one in node.all_expressions()
        for part in one.walk()
    )
