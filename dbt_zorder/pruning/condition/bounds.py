"""Compute the bounds of one side of a comparison in a file from those of its column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import types as t

from dbt_zorder.pruning.condition.cases import branches
from dbt_zorder.pruning.condition.constants import is_repeatable
from dbt_zorder.pruning.condition.local_time import Bounds, through_local, to_instant, to_local
from dbt_zorder.pruning.condition.monotone import Monotone, bound_sql, falls, parts_of, rules_of
from dbt_zorder.pruning.condition.operand import Operand, StatsNames
from dbt_zorder.pruning.condition.types import NUMERIC, Family, family, keeps_order
from dbt_zorder.pruning.predicate.tree import Arithmetic, Call, Case, Cast, Column, Negative, Node, to_sql
from dbt_zorder.spark.ddl import type_ddl

CASTS = {"bigint", "binary", "date", "decimal", "double", "float", "int", "smallint", "string", "timestamp", "tinyint"}
"""Types whose name is a function that casts."""

CHARACTERS = 20_000
"""Maximum length of a bound's SQL; functions within functions repeat it."""

_SHORT = 400
"""Maximum length of both bounds' SQL that may repeat the bounds of the argument."""

_YEARS = ("DATE'-4000-01-01'", "DATE'+20000-01-01'")
"""Dates and times within which no function overflows."""

_FOUR_DIGITS = "DATE'0001-01-01' AND DATE'9999-12-31'"
"""Dates whose texts sort as the dates do: other years have a sign, an era, or more digits."""

_SECONDS = (-100_000_000_000, 500_000_000_000)
"""Seconds within ``_YEARS``."""

_TIMES: dict[Family, t.DataType] = {
    Family.DATE: t.DateType(),
    Family.TIMESTAMP: t.TimestampType(),
    Family.TIMESTAMP_NTZ: t.TimestampNTZType(),
}


def read_operand(node: Node, stats: StatsNames, types: Mapping[str, t.DataType]) -> Operand | None:
    """Return ``node`` as an operand, or None if it does not keep or reverse the order of a column.

    Args:
        node: one side of a comparison.
        stats: names in the stats query.
        types: Spark's type of each listed function, keyed by its SQL, and of each cast's target, by the type's text.
    """
    if isinstance(node, Column):
        if not node.plain or family(node.data_type) is None:
            return None
        return Operand(node, stats.min_value(node), stats.max_value(node), node.data_type)
    if isinstance(node, Cast):
        inner, target = read_operand(node.child, stats, types), types.get(node.type_sql)
    elif is_cast(node):
        inner, target = read_operand(parts_of(node)[1][0], stats, types), types.get(to_sql(node))
    else:
        return _function(node, stats, types)
    return None if inner is None or target is None else _short(cast(inner, target))


def typed_nodes(tree: Node) -> Iterator[Node]:
    """Yield every function in a predicate whose type decides its bounds, or those of its cases."""
    for node in tree.walk():
        columns = node.columns() if isinstance(node, Call | Arithmetic | Negative | Case) else []
        is_listed = bool(columns) and (is_cast(node) or bool(rules_of(node)) or bool(branches(node)))
        if is_listed and all(column.plain and family(column.data_type) for column in columns) and is_repeatable(node):
            yield node


def is_cast(node: Node) -> bool:
    """Return whether ``node`` is a function that only casts its argument."""
    name, args = parts_of(node)
    return isinstance(node, Call) and len(args) == 1 and (name in CASTS or name in ("to_date", "to_timestamp"))


def cast(inner: Operand, target: t.DataType) -> Operand | None:
    """Return ``CAST(inner AS target)``, or None if the cast does not keep the order."""
    left, right = family(inner.data_type), family(target)
    sql = type_ddl(target)

    def function(value: str) -> str:
        return f"CAST({value} AS {sql})"

    if keeps_order(inner.data_type, target):
        return _operand(inner, _each(function), target)
    if left in _TIMES and right in _TIMES:
        compute = _each(function)
        if left is Family.TIMESTAMP:
            compute = _by(to_local, function)
        elif right is Family.TIMESTAMP:
            compute = to_instant
        return _operand(inner, _within(_YEARS, compute), target, is_open=True)
    if left in _TIMES and right is Family.STRING:
        dated = _dated(function)
        compute = _by(to_local, dated) if left is Family.TIMESTAMP else _each(dated)
        return _operand(inner, _within(_YEARS, compute), target, is_open=True)
    if left is Family.INTEGRAL and right is Family.TIMESTAMP:
        return _operand(inner, _within(_SECONDS, _each(function)), target, is_open=True)
    exact = left is Family.TIMESTAMP or (left in NUMERIC and not (left is Family.DECIMAL and sql == "float"))
    if exact and right in NUMERIC:
        compute = _without_nan(inner, _each(lambda value: f"try_cast({value} AS {sql})"))
        return _operand(inner, compute, target, is_open=True, is_partial=True)
    return None


def _function(node: Node, stats: StatsNames, types: Mapping[str, t.DataType]) -> Operand | None:
    result = types.get(to_sql(node))
    if result is None or family(result) is None:
        return None
    operands: dict[int, Operand | None] = {}
    for rule, position in rules_of(node):
        if position not in operands:
            operands[position] = read_operand(parts_of(node)[1][position], stats, types)
        inner = operands[position]
        if inner is not None and family(inner.data_type) in rule.accepts:
            return _short(_apply(rule, node, inner, result))
    return None


def _apply(rule: Monotone, node: Node, inner: Operand, result: t.DataType) -> Operand | None:
    """Return the operand of a function by its rule.

    Args:
        rule: rule of the function.
        node: function.
        inner: operand that it is called with.
        result: Spark's type of the function.
    """
    is_falling = falls(rule, node)
    if is_falling is None:
        return None
    reads = rule.reads
    if rule.local and reads is None:  # an interval of hours makes a TIMESTAMP of a DATE
        reads = family(result)
    if reads is not None and family(inner.data_type) is not reads:
        converted = cast(inner, _TIMES[reads])
        if converted is None:
            return None
        inner = converted
    given, kind = family(inner.data_type), type_ddl(inner.data_type)

    def as_called(value: str) -> str:
        return bound_sql(rule, node, value, kind)

    is_text_of_time = given in _TIMES and family(result) is Family.STRING
    function = _dated(as_called) if is_text_of_time else as_called
    compute = _each(function, swapped=is_falling)
    if rule.local and given is Family.TIMESTAMP:
        compute = _by(through_local if family(result) is Family.TIMESTAMP else to_local, function)
    limits = _YEARS if given in _TIMES else rule.within
    if limits is not None:
        compute = _within(limits, compute)
    if rule.period:
        compute = _in_one_period(rule.period, compute)
    compute = _without_nan(inner, compute)
    return _operand(inner, compute, result, is_open=given not in _TOTAL, is_partial=rule.nulls)


_Compute = Callable[[str, str], Bounds]
"""Function from the SQL of both bounds of a value to those of an expression of it."""

_TOTAL = {Family.STRING}
"""Families whose functions have bounds in every file with values."""


def _each(function: Callable[[str], str], *, swapped: bool = False) -> _Compute:
    def compute(low: str, high: str) -> Bounds:
        first, last = (high, low) if swapped else (low, high)
        return Bounds(function(first), function(last))

    return compute


def _by(conversion: Callable[[str, str, Callable[[str], str]], Bounds], function: Callable[[str], str]) -> _Compute:
    return lambda low, high: conversion(low, high, function)


def _dated(function: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function to a text of a time that gives NULL unless such texts sort as the times do."""
    return lambda value: f"if(CAST({value} AS DATE) BETWEEN {_FOUR_DIGITS}, {function(value)}, NULL)"


def _within(limits: tuple[object, object], compute: _Compute) -> _Compute:
    return lambda low, high: compute(low, high).only_if(f"{low} >= {limits[0]} AND {high} <= {limits[1]}")


def _in_one_period(period: str, compute: _Compute) -> _Compute:
    """Return the bounds of a function that rises within a period, such as a year, and then begins again."""
    return lambda low, high: compute(low, high).only_if(f"{period.format(c=low)} = {period.format(c=high)}")


def _without_nan(inner: Operand, compute: _Compute) -> _Compute:
    """Return bounds that are NULL where a file has NaN: it is above all numbers, also in a function that falls."""
    if family(inner.data_type) is not Family.BINARY_FLOAT:
        return compute
    return lambda low, high: compute(low, high).only_if(f"NOT isnan({high})")


def _operand(
    inner: Operand, compute: _Compute, result: t.DataType, *, is_open: bool = False, is_partial: bool = False
) -> Operand:
    low, high = compute(inner.low, inner.high).ends()
    both = ""
    if len(low) + len(high) > _SHORT:
        # one copy of the inner bounds, so that functions in functions stay short
        given = inner.both or Bounds(inner.low, inner.high).struct()
        both = f"transform(array({given}), b -> {compute('b.l', 'b.h').struct()})[0]"
        low, high = f"{both}.l", f"{both}.h"
    return Operand(inner.column, low, high, result, inner.is_open or is_open, inner.is_partial or is_partial, both)


def _short(operand: Operand | None) -> Operand | None:
    return None if operand is None or len(operand.low) + len(operand.high) > CHARACTERS else operand
