"""Table of the functions that keep, or reverse, the order of a column.

If a file's values lie between ``min`` and ``max``, the results of an increasing function lie between ``f(min)`` and
``f(max)``. Spark computes both on the statistics, by the function that the predicate calls. The table states for which
types and arguments that is true. Whatever it does not state keeps the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from dbt_zorder.pruning.condition.constants import is_constant
from dbt_zorder.pruning.condition.types import NUMERIC, Family
from dbt_zorder.pruning.predicate.tree import Arithmetic, Call, Literal, Negative, Node, Text, to_sql

TIMES = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ})
NUMBERS = frozenset(NUMERIC)
WHOLE = frozenset({Family.INTEGRAL})
FRACTIONS = NUMBERS - WHOLE
TEXTS = frozenset({Family.STRING})

_SECONDS = (-62_135_596_800, 253_402_300_799)
"""First and last second of the years 1 to 9999 in UTC."""


@dataclass(frozen=True)
class Monotone:
    """Rule for one function, or one operator.

    Attributes:
        form: SQL, in which ``c`` is the column and each other word a constant that ``ARGUMENTS`` describes.
        accepts: type families of ``c``.
        reads: family to which Spark casts ``c`` first; None if it leaves ``c`` as it is.
        falls: whether the function reverses the order.
        signed: whether a negative constant reverses the order; there is no rule for zero.
        local: whether a TIMESTAMP is read by the clock of the session's time zone, which may be set back.
        nulls: whether the result may be NULL for a value: an overflow, or a constant that is NULL.
        bound: SQL of the function on a bound ``{c}`` that gives NULL for an overflow; empty if it is the form itself.
        within: least and largest number for which bounds are computed.
        period: SQL of a period of ``{c}``, if the order holds within one period only.
    """

    form: str
    accepts: frozenset[Family]
    reads: Family | None = None
    falls: bool = False
    signed: bool = False
    local: bool = False
    nulls: bool = False
    bound: str = ""
    within: tuple[int, int] | None = None
    period: str = ""

    @property
    def name(self) -> str:
        """Return the function's name or the operator."""
        return self.form.split("(")[0] if "(" in self.form else next(w for w in self.form.split() if w not in ARGUMENTS)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the column's and the constants' words, in order."""
        inside = self.form.partition("(")[2].rstrip(")").split(", ") if "(" in self.form else self.form.split()
        return tuple(word for word in inside if word in ARGUMENTS)


_DAYS = {"year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"}
_HOURS = {*_DAYS, "day", "dd", "hour", "minute", "second", "millisecond", "microsecond"}
_GAP = r"(?:[-/.: _]|'[^']*')*"
_SORTABLE = re.compile(rf"{_GAP}yyyy(?:{_GAP}MM(?:{_GAP}dd(?:{_GAP}HH(?:{_GAP}mm(?:{_GAP}ss)?)?)?)?)?{_GAP}")
_NUMBER = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?:L|S|Y|D|F|BD)?", re.IGNORECASE)
_SMALL = 1_000_000


def number(node: Node) -> Decimal | None:
    """Return the value of a numeric literal with its sign, or None."""
    if isinstance(node, Negative):
        value = number(node.child)
        return None if value is None else -value
    match = _NUMBER.fullmatch(node.sql) if isinstance(node, Literal) else None
    return None if match is None else Decimal(match[1])


def _is_whole(node: Node) -> bool:
    value = number(node)
    return value is not None and value == int(value) and abs(value) <= _SMALL


def _is_interval(node: Node) -> bool:
    inner = node.child if isinstance(node, Negative) else node
    return isinstance(inner, Literal) and inner.sql.upper().startswith("(INTERVAL")


def _is_text(node: Node, allowed: Callable[[str], object]) -> bool:
    return isinstance(node, Text) and bool(allowed(node.value))


ARGUMENTS: Mapping[str, tuple[Callable[[Node], bool], str]] = {
    "c": (lambda node: bool(node.columns()), "the column"),
    "n": (_is_whole, "a whole number of up to a million"),
    "m": (lambda node: _is_whole(node) and (number(node) or 0) >= 0, "such a number that is not negative"),
    "1": (lambda node: number(node) in (0, 1), "1"),
    "v": (lambda node: number(node) is not None, "a number"),
    "i": (_is_interval, "an interval"),
    "k": (is_constant, "a constant"),
    "t": (lambda node: isinstance(node, Text), "a text"),
    "u": (
        lambda node: _is_text(node, lambda text: text.lower() in _DAYS),
        "`'year'`, `'quarter'`, `'month'`, `'week'`",
    ),
    "w": (lambda node: _is_text(node, lambda text: text.lower() in _HOURS), "such a unit, or one down to microseconds"),
    "p": (lambda node: _is_text(node, _SORTABLE.fullmatch), "a pattern from the year down, such as `'yyyy-MM-dd HH'`"),
}
"""Words of a form: the test of a constant, and what it must be in plain words."""

_DATE, _TIMESTAMP, _LOCAL = Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ

FUNCTIONS = (
    Monotone("year(c)", TIMES, _DATE),
    Monotone("month(c)", TIMES, _DATE, period="year({c})"),
    Monotone("quarter(c)", TIMES, _DATE, period="year({c})"),
    Monotone("dayofyear(c)", TIMES, _DATE, period="year({c})"),
    Monotone("day(c)", TIMES, _DATE, period="trunc({c}, 'month')"),
    Monotone("dayofmonth(c)", TIMES, _DATE, period="trunc({c}, 'month')"),
    Monotone("hour(c)", TIMES, _LOCAL, period="CAST({c} AS DATE)"),
    Monotone("trunc(c, u)", TIMES, _DATE),
    Monotone("last_day(c)", TIMES, _DATE),
    Monotone("add_months(c, n)", TIMES, _DATE),
    Monotone("date_add(c, n)", TIMES, _DATE),
    Monotone("dateadd(c, n)", TIMES, _DATE),
    Monotone("date_sub(c, n)", TIMES, _DATE),
    Monotone("datediff(c, k)", TIMES, _DATE, nulls=True),
    Monotone("datediff(k, c)", TIMES, _DATE, falls=True, nulls=True),
    Monotone("date_diff(c, k)", TIMES, _DATE, nulls=True),
    Monotone("date_diff(k, c)", TIMES, _DATE, falls=True, nulls=True),
    Monotone("unix_date(c)", frozenset({_DATE})),
    Monotone("date_from_unix_date(c)", WHOLE, within=(-719_162, 2_932_896)),
    Monotone("date_trunc(w, c)", TIMES, _TIMESTAMP, local=True),
    Monotone("date_format(c, p)", TIMES, _TIMESTAMP, local=True),
    Monotone("unix_timestamp(c)", TIMES),
    Monotone("unix_timestamp(c, t)", TIMES),
    Monotone("to_unix_timestamp(c)", TIMES),
    Monotone("to_unix_timestamp(c, t)", TIMES),
    Monotone("unix_seconds(c)", frozenset({_TIMESTAMP})),
    Monotone("unix_millis(c)", frozenset({_TIMESTAMP})),
    Monotone("unix_micros(c)", frozenset({_TIMESTAMP})),
    Monotone("timestamp_seconds(c)", WHOLE, within=_SECONDS),
    Monotone("timestamp_millis(c)", WHOLE, within=(_SECONDS[0] * 10**3, _SECONDS[1] * 10**3)),
    Monotone("timestamp_micros(c)", WHOLE, within=(_SECONDS[0] * 10**6, _SECONDS[1] * 10**6)),
    Monotone("from_unixtime(c)", WHOLE, _TIMESTAMP, local=True, bound="date_format({c}, 'yyyy-MM-dd HH:mm:ss')"),
    Monotone("from_unixtime(c, p)", WHOLE, _TIMESTAMP, local=True, bound="date_format({c}, {p})"),
    Monotone("c + i", TIMES, local=True),
    Monotone("i + c", TIMES, local=True),
    Monotone("c - i", TIMES, local=True),
    Monotone("c + n", frozenset({_DATE}), bound="date_add({c}, {n})"),
    Monotone("c - n", frozenset({_DATE}), bound="date_sub({c}, {n})"),
    Monotone("c + v", NUMBERS, nulls=True, bound="try_add({c}, {v})"),
    Monotone("v + c", NUMBERS, nulls=True, bound="try_add({v}, {c})"),
    Monotone("c - v", NUMBERS, nulls=True, bound="try_subtract({c}, {v})"),
    Monotone("v - c", NUMBERS, nulls=True, falls=True, bound="try_subtract({v}, {c})"),
    Monotone("c * v", NUMBERS, nulls=True, signed=True, bound="try_multiply({c}, {v})"),
    Monotone("v * c", NUMBERS, nulls=True, signed=True, bound="try_multiply({v}, {c})"),
    Monotone("c / v", NUMBERS, nulls=True, signed=True, bound="try_divide({c}, {v})"),
    Monotone("- c", WHOLE, falls=True, bound="try_subtract(CAST(0 AS {type}), {c})"),
    Monotone("- c", FRACTIONS, falls=True),
    Monotone("negative(c)", WHOLE, falls=True, bound="try_subtract(CAST(0 AS {type}), {c})"),
    Monotone("negative(c)", FRACTIONS, falls=True),
    Monotone("positive(c)", NUMBERS),
    Monotone("floor(c)", NUMBERS, nulls=True),
    Monotone("ceil(c)", NUMBERS, nulls=True),
    Monotone("ceiling(c)", NUMBERS, nulls=True),
    Monotone("round(c)", NUMBERS, nulls=True),
    Monotone("round(c, m)", NUMBERS, nulls=True),
    Monotone("bround(c)", NUMBERS, nulls=True),
    Monotone("bround(c, m)", NUMBERS, nulls=True),
    Monotone("substr(c, 1, m)", TEXTS),
    Monotone("substring(c, 1, m)", TEXTS),
    Monotone("left(c, m)", TEXTS),
    Monotone("concat(t, c)", TEXTS),
    Monotone("t || c", TEXTS),
)

_BY_NAME: dict[str, list[Monotone]] = {}
for _rule in FUNCTIONS:
    _BY_NAME.setdefault(_rule.name, []).append(_rule)


def parts_of(node: Node) -> tuple[str, tuple[Node, ...]]:
    """Return the name and the arguments of a call or an operator; an empty name for other nodes."""
    match node:
        case Call(name=name, args=args):
            return name.lower(), args
        case Arithmetic(op=op, left=left, right=right):
            return op, (left, right)
        case Negative(child=child):
            return "-", (child,)
    return "", ()


def rules_of(node: Node) -> list[tuple[Monotone, int]]:
    """Return the rules whose form ``node`` has, each with the position of the column."""
    name, args = parts_of(node)
    return [
        (rule, rule.words.index("c"))
        for rule in _BY_NAME.get(name, ())
        if len(rule.words) == len(args)
        and all(ARGUMENTS[word][0](arg) for word, arg in zip(rule.words, args, strict=True))
    ]


def falls(rule: Monotone, node: Node) -> bool | None:
    """Return whether ``node`` reverses the order; None if it does neither, as ``c * 0``."""
    if not rule.signed:
        return rule.falls
    value = number(parts_of(node)[1][rule.words.index("v")])
    return None if not value else value < 0


def bound_sql(rule: Monotone, node: Node, value: str, type_sql: str) -> str:
    """Return ``node`` as SQL with ``value`` in place of the column.

    Args:
        rule: rule of the node.
        node: call or operator.
        value: SQL of a bound.
        type_sql: the bound's type as DDL.
    """
    name, args = parts_of(node)
    written = {word: value if word == "c" else to_sql(arg) for word, arg in zip(rule.words, args, strict=True)}
    if rule.bound:
        return rule.bound.format(**written, type=type_sql)
    if isinstance(node, Call):
        return f"{name}({', '.join(written[word] for word in rule.words)})"
    if isinstance(node, Negative):
        return f"(- {value})"
    return f"({f' {name} '.join(written[word] for word in rule.words)})"
