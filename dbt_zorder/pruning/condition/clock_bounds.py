"""Replace the clock in a lower bound, such as ``ts >= now() - INTERVAL 7 DAYS``, by an earlier moment than the present.

A query runs later than its files are chosen. The clock then shows more, so fewer rows pass a lower bound that grows
with it. Files without a row that passes by an earlier moment therefore have none when the query runs. Nothing else that
depends on the clock can exclude files.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dbt_zorder.pruning.condition.constants import is_constant
from dbt_zorder.pruning.predicate.functions import hidden_functions
from dbt_zorder.pruning.predicate.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Cast,
    Compare,
    Literal,
    Node,
    Not,
    Opaque,
    Or,
    Text,
    to_sql,
)

_KINDS = {
    "current_date": "DATE",
    "curdate": "DATE",
    "current_timestamp": "TIMESTAMP_LTZ",
    "now": "TIMESTAMP_LTZ",
    "localtimestamp": "TIMESTAMP_NTZ",
}
"""Functions that return the present, with the type of each."""

_GROWS = {">": True, ">=": True, "<": False, "<=": False}
"""Whether the right side is a lower bound of the left one."""

_MONTHS = re.compile("year|quarter|month", re.IGNORECASE)
_TARGETS = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_OF_ONE = {"date", "to_date", "timestamp", "last_day"}
_STEP = 1
_MONTH_STEP = 5
"""Days by which a step may return less for a later moment.

Clocks are set back, and skip hours, by one day at most. Months clamp the last days: 28 to 31 January become
28 February, each at its own time of day.
"""


@dataclass(frozen=True)
class _Moment:
    """The present.

    Attributes:
        date: the day in the session's time zone.
        utc, local: date and time in UTC and in the session's time zone.
    """

    date: dt.date
    utc: dt.datetime
    local: dt.datetime

    def literal(self, kind: str, days: int) -> Literal:
        """Return the moment so many days ago as a literal of a type."""
        before = dt.timedelta(days=days)
        match kind:
            case "DATE":
                return Literal(f"DATE '{(self.date - before).isoformat()}'")
            case "TIMESTAMP_NTZ":
                return Literal(f"TIMESTAMP_NTZ '{(self.local - before).isoformat(sep=' ')}'")
        return Literal(f"TIMESTAMP_LTZ '{(self.utc - before).isoformat(sep=' ')}Z'")


def with_clock_bounds(spark: SparkSession, tree: Node, columns: Collection[str]) -> Node:
    """Return a predicate that is TRUE for every row that passes ``tree`` now or later; ``tree`` itself without a bound.

    Args:
        spark: reader's session.
        tree: predicate that Spark has confirmed.
        columns: names of the table's columns, which hide functions that are called without parentheses.
    """
    hidden = {name.lower() for name in columns}
    clocks = {name for node in tree.walk() if (name := _clock(node)) is not None}
    if not clocks or clocks & hidden or hidden_functions(spark, clocks):
        return tree
    return _with_bounds(tree, _read_moment(spark), negated=False)


def _read_moment(spark: SparkSession) -> _Moment:
    sql = (
        "SELECT CAST(current_date AS STRING), CAST(current_timestamp AS BIGINT), "
        "CAST(CAST(current_timestamp AS TIMESTAMP_NTZ) AS STRING)"
    )
    day, seconds, local = spark.sql(sql).collect()[0]
    utc = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return _Moment(dt.date.fromisoformat(day), utc, dt.datetime.fromisoformat(local[:19]))


def _with_bounds(node: Node, moment: _Moment, *, negated: bool) -> Node:
    match node:
        case Not(child=child):
            return Not(_with_bounds(child, moment, negated=not negated))
        case And(terms=terms) | Or(terms=terms):
            return replace(node, terms=tuple(_with_bounds(term, moment, negated=negated) for term in terms))
        case Between(child=child, low=low, high=high):
            pair = (Compare(">=", child, low), Compare("<=", child, high))
            bounded = tuple(_with_bounds(term, moment, negated=negated) for term in pair)
            return node if bounded == pair else And(bounded)
        case Compare(op=op, left=left, right=right) if op in _GROWS:
            if _GROWS[op] != negated and not _has_clock(left):
                return replace(node, right=_before(right, moment))
            if _GROWS[op] == negated and not _has_clock(right):
                return replace(node, left=_before(left, moment))
    return node


def _before(bound: Node, moment: _Moment) -> Node:
    """Return a bound that is never above ``bound`` from now on; ``bound`` itself if it may shrink with the clock."""
    days = _slack(bound)
    return bound if days is None else _replaced(bound, moment, days)


def _slack(node: Node) -> int | None:
    """Return how many days the clock must go on until an expression of it is never less; None if it may be at any time.

    The expression is the clock, or a chain of steps that keep its order but for what clocks and months do.
    """
    if _clock(node) is not None:
        return _STEP
    match node:
        case Arithmetic(op="+" | "-", left=left, right=right) if is_constant(right):
            return _more(left, right)
        case Arithmetic(op="+", left=left, right=right) if is_constant(left):
            return _more(right, left)
        case Cast(child=child, type_sql=kind) if kind.upper() in _TARGETS:
            return _more(child)
        case Call(name=name, args=(child,)) if name.lower() in _OF_ONE:
            return _more(child)
        case Call(name=name, args=(child, other)) if name.lower() in {"date_add", "date_sub"} and is_constant(other):
            return _more(child)
        case Call(name=name, args=(child, other)) if name.lower() == "add_months" and is_constant(other):
            return _more(child, Text("month"))
        case Call(name=name, args=(child, Text())) if name.lower() == "trunc":
            return _more(child)
        case Call(name=name, args=(Text(), child)) if name.lower() == "date_trunc":
            return _more(child)
    return None


def _more(child: Node, step: Node | None = None) -> int | None:
    days = _slack(child)
    has_months = step is not None and _MONTHS.search(to_sql(step)) is not None
    return None if days is None else days + (_MONTH_STEP if has_months else _STEP)


def _replaced(node: Node, moment: _Moment, days: int) -> Node:
    name = _clock(node)
    if name is not None:
        return moment.literal(_KINDS[name], days)
    match node:
        case Arithmetic(left=left, right=right):
            return replace(node, left=_replaced(left, moment, days), right=_replaced(right, moment, days))
        case Cast(child=child):
            return replace(node, child=_replaced(child, moment, days))
        case Call(args=args):
            return replace(node, args=tuple(_replaced(arg, moment, days) for arg in args))
    return node


def _clock(node: Node) -> str | None:
    """Return the name of the clock function that a node is; None for any other node."""
    name = ""
    if isinstance(node, Call) and not node.args:
        name = node.name.lower()
    elif isinstance(node, Opaque):
        name = node.sql.lower().removesuffix("()").strip()
    return name if name in _KINDS else None


def _has_clock(node: Node) -> bool:
    return any(_clock(inner) is not None for inner in node.walk())
