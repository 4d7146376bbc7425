"""Find the parts of a predicate that depend on the clock without calling it, or on the time zone.

Spark reads ``'today'``, ``'Now'`` and ``' tomorrow UTC'`` as dates and times (``SpecialDatetimeValues``). It reads a
time without a date, ``'09:00'`` or ``'T9:30'``, as one on the day when the query runs. So beside dates and times a text
is a constant only if it begins with a year. Each of these tests may be too careful, which costs time. It must never be
too lax.
"""

from __future__ import annotations

import re

from pyspark.sql import types as t

from dbt_zorder.pruning.predicate.tree import Arithmetic, Call, Cast, Column, Literal, Node, Text

_DATED = re.compile(r"\s*[+-]?\d{4,}(-.*)?", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+|yyyy[-A-Za-z ':/._]*")
_SPECIAL = {"epoch", "now", "today", "tomorrow", "yesterday"}
_TYPED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ) ['\"](.*)['\"]", re.DOTALL)

_DATE_FUNCTIONS = {
    "add_months", "date", "date_add", "date_diff", "date_from_unix_date", "date_sub", "datediff", "day",
    "dayofmonth", "dayofweek", "dayofyear", "last_day", "make_date", "month", "quarter", "trunc", "unix_date",
    "weekday", "weekofyear", "year",
}  # fmt: skip
_TIME_FUNCTIONS = {
    "date_format", "date_trunc", "dateadd", "from_unixtime", "hour", "minute", "months_between", "second", "timestamp",
    "timestamp_micros", "timestamp_millis", "timestamp_seconds", "to_date", "to_timestamp", "to_timestamp_ntz",
    "to_unix_timestamp", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp",
}  # fmt: skip
"""Repeatable functions that accept or return times; those above do so with dates. ``to_date`` may have a format."""

_TEXT_FUNCTIONS = {
    "concat", "concat_ws", "date_format", "from_unixtime", "hex", "initcap", "lcase", "left", "lower", "lpad",
    "ltrim", "replace", "reverse", "right", "rpad", "rtrim", "split_part", "string", "substr", "substring",
    "translate", "trim", "ucase", "upper",
}  # fmt: skip
"""Repeatable functions that return a text."""


_FORMATTING = {"date_format", "from_unixtime"}
_PREFIXES = {"left", "substr", "substring"}


def contains_datetime(node: Node) -> bool:
    """Return whether ``node`` contains a date, a time or an interval.

    Spark reads a text as a date or a time only beside one of these.
    """
    return any(_is_date(inner) or _is_time(inner) for inner in node.walk())


def depends_on_zone(node: Node) -> bool:
    """Return whether ``node`` may have another meaning in another time zone: it contains a time, not only dates."""
    return any(_is_time(inner) for inner in node.walk())


def clock_dependent_text(node: Node) -> Node | None:
    """Return a text in ``node`` that may be another date or time tomorrow, or None if there is none."""
    return next((inner for inner in node.walk() if not _is_fixed(inner)), None)


def _is_date(node: Node) -> bool:
    match node:
        case Column(data_type=kind):
            return isinstance(kind, t.DateType | t.TimestampNTZType)
        case Literal(sql=sql):
            return sql.startswith(("DATE ", "TIMESTAMP_NTZ "))
        case Cast(type_sql=kind):
            return "DATE" in kind.upper()
        case Call(name=name):
            return name.lower() in _DATE_FUNCTIONS
    return False


def _is_time(node: Node) -> bool:
    match node:
        case Column(data_type=kind):
            return isinstance(kind, t.TimestampType)
        case Literal(sql=sql):
            # an interval may be added to a text
            return sql.startswith(("TIMESTAMP ", "TIMESTAMP_LTZ ", "(INTERVAL"))
        case Cast(type_sql=kind):
            return "TIME" in kind.upper() or "INTERVAL" in kind.upper()
        case Call(name=name):
            return name.lower() in _TIME_FUNCTIONS
    return False


def _is_fixed(node: Node) -> bool:
    match node:
        case Text(value=value):
            # a word is a unit of time, or never a date
            is_word = _WORD.fullmatch(value) is not None and value.lower() not in _SPECIAL
            return is_word or _DATED.fullmatch(value) is not None
        case Literal(sql=sql):
            typed = _TYPED.fullmatch(sql)
            return typed is None or _DATED.fullmatch(typed[2]) is not None
        case Column(data_type=kind):
            return not isinstance(kind, t.StringType | t.BinaryType)
        case Cast(child=child, type_sql=kind):
            made_text = any(name in kind.upper() for name in ("STRING", "CHAR", "TEXT"))
            return not made_text or (isinstance(child, Column) and _is_fixed(child))
        case Call(name=name):
            return name.lower() not in _TEXT_FUNCTIONS or _begins_with_year(node)
        case Arithmetic(op=op):
            return op != "||"
    return True


def _begins_with_year(node: Node) -> bool:
    """Return whether ``node`` is a text of a time, or its beginning, in which the year comes first."""
    match node:
        case Cast(child=Column(), type_sql=kind):
            return _is_fixed(node) and "STRING" in kind.upper()
        case Call(name=name, args=(_, Text(value=pattern))) if name.lower() in _FORMATTING:
            return pattern.startswith("yyyy")
        case Call(name=name, args=(_,)):
            return name.lower() == "from_unixtime"
        case Call(name=name, args=(child, *others)) if name.lower() in _PREFIXES:
            from_start = len(others) == 1 if name.lower() == "left" else others[:1] == [Literal("1")]
            return from_start and _begins_with_year(child)
    return False
