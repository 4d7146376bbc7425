"""Classify expressions as constant or repeatable, and explain why others keep every file."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_zorder.pruning.condition.times import clock_dependent_text, contains_datetime
from dbt_zorder.pruning.predicate.tree import (
    Arithmetic,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Opaque,
    Row,
    to_sql,
)

CLOCK_FUNCTIONS = {
    "now",
    "current_timestamp",
    "current_date",
    "curdate",
    "localtimestamp",
    "unix_timestamp",
    "current_time",
}
"""Functions that read the clock. The query runs later than files are excluded, so their value may differ."""

RANDOM_FUNCTIONS = {"rand": 0, "random": 0, "randn": 0, "uuid": 0, "shuffle": 1, "randstr": 1, "uniform": 2}
"""Functions that return another value at each call, and their number of arguments without a seed.

With a seed, the value depends on the place of the row in its task.
"""

POSITION_FUNCTIONS = {
    "monotonically_increasing_id", "spark_partition_id", "input_file_name", "input_file_block_start",
    "input_file_block_length",
}  # fmt: skip
"""Functions whose value depends on the task or the file block that a row is read from."""

# fmt: off
REPEATABLE = frozenset(
    {
        "abs", "add_months", "bigint", "binary", "boolean", "bround", "ceil", "ceiling", "char_length",
        "character_length", "coalesce", "concat", "concat_ws", "contains", "date", "date_add", "date_diff",
        "date_format", "date_from_unix_date", "date_sub", "date_trunc", "dateadd", "datediff", "day",
        "dayofmonth", "dayofweek", "dayofyear", "decimal", "double", "endswith", "float", "floor",
        "from_unixtime", "greatest", "hex", "hour", "if", "ifnull", "initcap", "instr", "int", "isnan",
        "isnotnull", "isnull", "last_day", "lcase", "least", "left", "length", "locate", "lower", "lpad",
        "ltrim", "make_date", "minute", "month", "months_between", "negative", "nullif", "nvl", "nvl2", "pmod",
        "positive", "quarter", "regexp", "regexp_like", "replace", "reverse", "right", "rlike", "round", "rpad",
        "rtrim", "second", "sign", "signum", "smallint", "split_part", "startswith", "string", "substr",
        "substring", "timestamp", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "tinyint",
        "to_date", "to_timestamp", "to_timestamp_ntz", "to_unix_timestamp", "translate", "trim", "trunc",
        "ucase", "unix_date", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "upper",
        "weekday", "weekofyear", "year",
    }
)
# fmt: on
"""Functions whose result depends only on their arguments and the session's settings."""


def is_constant(node: Node) -> bool:
    """Return whether ``node`` has one value for the whole query, whenever the query runs."""
    return is_repeatable(node) and not node.columns()


def is_repeatable(node: Node) -> bool:
    """Return whether every part of ``node`` is understood and gives the same result for the same column values."""
    known = all(
        not isinstance(inner, Opaque) and (not isinstance(inner, Call) or _is_repeatable_call(inner))
        for inner in node.walk()
    )
    return known and not _may_depend_on_clock(node)


def _is_repeatable_call(call: Call) -> bool:
    name = call.name.lower()
    return name in REPEATABLE and not (name in CLOCK_FUNCTIONS and not call.args)


def _may_depend_on_clock(node: Node) -> bool:
    """Return whether Spark may read a text in ``node``, such as ``'today'``, as a date or a time."""
    return contains_datetime(node) and clock_dependent_text(node) is not None


def is_null(node: Node) -> bool:
    """Return whether ``node`` is the literal NULL."""
    return isinstance(node, Literal) and node.sql == "NULL"


def compared_constants(node: Node) -> Iterator[Node]:
    """Yield every constant that is compared and whose type therefore decides the comparison."""
    for inner in node.walk():
        sides: tuple[Node, ...] = ()
        if isinstance(inner, Compare):
            sides = (inner.left, inner.right)
        elif isinstance(inner, Between):
            sides = (inner.child, inner.low, inner.high)
        elif isinstance(inner, In):
            sides = (inner.child, *inner.values)
        elif isinstance(inner, Like):
            sides = (inner.pattern,)
        for side in sides:
            for item in side.items if isinstance(side, Row) else (side,):
                if is_constant(item):
                    yield item


def cast_types(node: Node) -> set[str]:
    """Return the text of every cast's target type."""
    return {inner.type_sql for inner in node.walk() if isinstance(inner, Cast)}


def unknown_reason(node: Node) -> str:
    """Return why ``node`` keeps every file: the reason for its first part that is not understood."""
    for inner in node.walk():
        if isinstance(inner, Opaque):
            name = inner.sql.lower().removesuffix("()").strip()
            if name in CLOCK_FUNCTIONS:
                return "it depends on the moment at which the query runs"
            return inner.reason
        if isinstance(inner, Call):
            if inner.name.lower() in CLOCK_FUNCTIONS and not inner.args:
                return "it depends on the moment at which the query runs"
            if inner.name.lower() not in REPEATABLE:
                return f"nothing is certain about the function {inner.name}()"
    text = clock_dependent_text(node) if contains_datetime(node) else None
    if text is not None:
        return f"as a date or a time, {to_sql(text)} may depend on the moment at which the query runs, as 'today' does"
    for inner in node.walk():
        if isinstance(inner, Column) and not inner.plain:
            return f"column '{inner.name}' is CHAR or has a collation: its order is not that of its bytes"
    if any(isinstance(inner, Arithmetic | Negative) for inner in node.walk()):
        return "this arithmetic on a column does not keep its order"
    calls = [inner.name for inner in node.walk() if isinstance(inner, Call)]
    if calls:
        return f"{calls[0]}() of a column does not keep its order, or not with these arguments"
    if any(isinstance(inner, Cast) for inner in node.walk()):
        return "the cast does not keep the order of the column"
    columns = node.columns()
    if isinstance(node, Compare | Between | In) and columns:
        return f"comparing {columns[0].data_type.simpleString()} with this type does not keep the order of the column"
    if isinstance(node, Like | IsNull | Not):
        return "bounds do not decide this"
    return "this form of expression is not analysed"
