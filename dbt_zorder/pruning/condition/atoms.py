"""Truth table: for each kind of test, the SQL that is TRUE unless no row of a file can pass it.

Every function returns SQL over a file's statistics; NULL counts as "no row can". The rows of the table, with the wrong
answers that other systems gave, are listed in docs/pruning.md. A rule here may be too lax, which costs time; it must
never be too strict, which would cost rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.pruning.condition.like import REPLACEMENT, Pattern, Tail
from dbt_zorder.pruning.condition.operand import Operand, StatsNames
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_string

SEARCH_FROM = 17
"""A list of this many values or more is searched by halves in a sorted array, not one comparison a value."""

COMPARE_UP_TO = 200
"""Values compared one by one where they cannot be sorted, such as numbers written as strings."""

COMPLEMENT = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""``NOT (a op b)`` is ``a COMPLEMENT[op] b``, also in three-valued logic."""

FLIP = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""``v op c`` is ``c FLIP[op] v``."""


def compare(op: str, operand: Operand, value: str) -> str:
    """``c op v`` for ``= <> < <= > >=``; a file of NULLs only has NULL bounds and fails them all, rightly."""
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
    """``c <=> v``, where ``v`` may turn out NULL only after Spark has cast it, as in ``int_column <=> 'x'``."""
    nothing = f"CAST(NULL AS {type_ddl(operand.data_type)})"
    nulls = stats.null_count(operand.column)
    return f"({compare('=', operand, value)}) OR ({nulls} > 0 AND ({nothing} <=> {value}))"


def not_null_safe_equal(operand: Operand, value: str, stats: StatsNames) -> str:
    """``NOT (c <=> v)``: NULL rows pass, and so does every value when ``v`` is NULL."""
    differs = compare("<>", operand, value)
    return f"{stats.null_count(operand.column)} > 0 OR coalesce({differs}, true)"


def is_null(operand: Operand, stats: StatsNames) -> str:
    """``c IS NULL``, ``c <=> NULL``."""
    return f"{stats.null_count(operand.column)} > 0"


def is_not_null(operand: Operand, stats: StatsNames) -> str:
    """``c IS NOT NULL``, ``NOT (c <=> NULL)``."""
    return f"{stats.null_count(operand.column)} < row_count"


def in_list(operand: Operand, values: Sequence[str], *, sortable: bool = True) -> str | None:
    """``c IN (v1, ...)``, with NULLs already dropped from the list; None for a list too long to be asked about.

    Args:
        operand: the column.
        values: SQL of the values.
        sortable: the values are ordered among themselves as they are when compared with the column.
    """
    if not values:
        return "false"
    if len(values) < SEARCH_FROM or (not sortable and len(values) <= COMPARE_UP_TO):
        return " OR ".join(f"({compare('=', operand, value)})" for value in values)
    if not sortable:
        return None
    # The place of the first value not below `low`, by halves; it matches if it is not above `high`.
    array = f"sort_array(array_except(array({', '.join(values)}), array(NULL)))"
    halves = ", ".join(str(1 << bit) for bit in reversed(range(len(values).bit_length())))
    place = (
        f"aggregate(array({halves}), 0, (at, step) -> "
        f"if(coalesce(get({array}, at + step - 1) < {operand.low}, false), at + step, at))"
    )
    return f"get({array}, {place}) <= {operand.high}"


def not_in_list(operand: Operand, values: Sequence[str]) -> str:
    """``c NOT IN (v1, ...)``: only a file of one value that is in the list is left out."""
    low, high = operand.low, operand.high
    return f"{low} IS NOT NULL AND NOT coalesce({low} = {high} AND {low} IN ({', '.join(values)}), false)"


def starts_with(operand: Operand, prefix: str) -> str:
    """Value begins with ``prefix``: what lies between the prefix and a string that has it, has it too."""
    text = quote_string(prefix)
    return f"{operand.high} >= {text} AND ({operand.low} <= {text} OR startswith({operand.low}, {text}))"


def not_starts_with(operand: Operand, prefix: str) -> str:
    """Value does not begin with ``prefix``; if both bounds do, all values do."""
    text = quote_string(prefix)
    return f"NOT (startswith({operand.low}, {text}) AND startswith({operand.high}, {text}))"


def like(operand: Operand, pattern: Pattern, *, negated: bool) -> str | None:
    """``c [NOT] LIKE pattern``, or None if bounds do not decide it."""
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
    """``a op b`` of two columns of one type."""
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
