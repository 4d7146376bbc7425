"""Rules of the truth table: SQL that is TRUE unless no row of a file can pass a test.

Every function returns SQL over a file's statistics. NULL counts as "no row can pass".
docs/reference/predicates.md lists the rules and the wrong answers that other systems gave. A rule may be too lax,
which costs time. It must never be too strict, which would lose rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.pruning.condition.like import REPLACEMENT, Pattern, Tail
from dbt_zorder.pruning.condition.operand import Operand, StatsNames
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_string

SEARCH_FROM = 17
"""Minimum number of values for a binary search in a sorted array. Shorter lists are compared value by value."""

COMPARE_UP_TO = 200
"""Maximum number of unsortable values, such as numbers written as strings, that are compared one by one."""

COMPLEMENT = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""``NOT (a op b)`` is ``a COMPLEMENT[op] b``, also in three-valued logic."""

FLIP = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""``v op c`` is ``c FLIP[op] v``."""


def compare(op: str, operand: Operand, value: str) -> str:
    """Return SQL for ``c op v`` with one of ``= <> < <= > >=``.

    A file that contains only NULLs has NULL bounds and fails every test, which is correct.
    """
    low, high = operand.low, operand.high
    match op:
        case "=":
            return f"{low} <= {value} AND {value} <= {high}"
        case "<>":
            return f"{low} < {value} OR {value} < {high}"
        case "<" | "<=":
            return f"{low} {op} {value}"
        case ">" | ">=":
            return f"{high} {op} {value}"
    msg = f"No rule for the operator {op}."
    raise ValueError(msg)


def null_safe_equal(operand: Operand, value: str, stats: StatsNames) -> str:
    """Return SQL for ``c <=> v``.

    ``v`` may become NULL only when Spark casts it, as in ``int_column <=> 'x'``.
    """
    nothing = f"CAST(NULL AS {type_ddl(operand.data_type)})"
    return f"({compare('=', operand, value)}) OR ({stats.has_null(operand)} AND ({nothing} <=> {value}))"


def not_null_safe_equal(operand: Operand, value: str, stats: StatsNames) -> str:
    """Return SQL for ``NOT (c <=> v)``: NULL rows pass, and every value passes when ``v`` is NULL."""
    differs = compare("<>", operand, value)
    return f"{stats.has_null(operand)} OR coalesce({differs}, true)"


def is_null(operand: Operand, stats: StatsNames) -> str:
    """Return SQL for ``c IS NULL`` and ``c <=> NULL``."""
    return stats.has_null(operand)


def is_not_null(operand: Operand, stats: StatsNames) -> str:
    """Return SQL for ``c IS NOT NULL`` and ``NOT (c <=> NULL)``."""
    return f"{stats.null_count(operand.column)} < row_count"


def in_list(operand: Operand, values: Sequence[str], *, sortable: bool = True) -> str | None:
    """Return SQL for ``c IN (v1, ...)``, or None if the list is too long to test.

    Args:
        operand: column to test.
        values: SQL of the values, without NULLs.
        sortable: whether the values sort among themselves as they compare with the column.
    """
    if not values:
        return "false"
    if len(values) < SEARCH_FROM or (not sortable and len(values) <= COMPARE_UP_TO):
        return " OR ".join(f"({compare('=', operand, value)})" for value in values)
    if not sortable:
        return None
    # Binary search: the index of the first value that is not below `low`. It matches if it is not above `high`.
    array = f"sort_array(array_except(array({', '.join(values)}), array(NULL)))"
    halves = ", ".join(str(1 << bit) for bit in reversed(range(len(values).bit_length())))
    place = (
        f"aggregate(array({halves}), 0, (at, step) -> "
        f"if(coalesce(get({array}, at + step - 1) < {operand.low}, false), at + step, at))"
    )
    return f"get({array}, {place}) <= {operand.high}"


def not_in_list(operand: Operand, values: Sequence[str]) -> str:
    """Return SQL for ``c NOT IN (v1, ...)``, which excludes a file only if its single value is in the list."""
    low, high = operand.low, operand.high
    return f"{low} IS NOT NULL AND NOT coalesce({low} = {high} AND {low} IN ({', '.join(values)}), false)"


def starts_with(operand: Operand, prefix: str) -> str:
    """Return SQL for "the value begins with ``prefix``".

    Every value between the prefix and a string that begins with it also begins with it.
    """
    text = quote_string(prefix)
    return f"{operand.high} >= {text} AND ({operand.low} <= {text} OR startswith({operand.low}, {text}))"


def not_starts_with(operand: Operand, prefix: str) -> str:
    """Return SQL for "the value does not begin with ``prefix``"; if both bounds begin with it, all values do."""
    text = quote_string(prefix)
    return f"NOT (startswith({operand.low}, {text}) AND startswith({operand.high}, {text}))"


def like(operand: Operand, pattern: Pattern, *, negated: bool) -> str | None:
    """Return SQL for ``c [NOT] LIKE pattern``, or None if bounds cannot decide it."""
    if negated:
        if pattern.tail is Tail.NOTHING:
            return compare("<>", operand, quote_string(pattern.prefix))
        return not_starts_with(operand, pattern.prefix) if pattern.tail is Tail.ANYTHING else None
    if REPLACEMENT in pattern.prefix or (not pattern.prefix and pattern.tail is not Tail.NOTHING):
        return None
    if pattern.tail is Tail.NOTHING:
        return compare("=", operand, quote_string(pattern.prefix))
    return starts_with(operand, pattern.prefix)


def compare_columns(op: str, left: Operand, right: Operand) -> str:
    """Return SQL for ``a op b``, where both columns have the same type."""
    match op:
        case "=":
            return f"{left.low} <= {right.high} AND {right.low} <= {left.high}"
        case "<>":
            return f"{left.low} < {right.high} OR {right.low} < {left.high}"
        case "<" | "<=":
            return f"{left.low} {op} {right.high}"
        case ">" | ">=":
            return f"{left.high} {op} {right.low}"
    msg = f"No rule for the operator {op}."
    raise ValueError(msg)
