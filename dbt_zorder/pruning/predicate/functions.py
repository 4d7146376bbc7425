"""Find functions in a predicate whose result depends on other rows, or that the session hides by its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from dbt_zorder.pruning.condition.constants import POSITION_FUNCTIONS, RANDOM_FUNCTIONS, REPEATABLE
from dbt_zorder.pruning.predicate.parse import Expr

OWN = frozenset(
    {
        "aggregate", "array", "array_except", "coalesce", "collect_list", "concat", "count", "count_if", "date_add",
        "date_format", "date_sub", "endswith", "first", "get", "if", "isnan", "length", "lpad", "named_struct",
        "sort_array", "split", "startswith", "struct", "substring", "sum", "timestamp_micros", "timestamp_millis",
        "transform", "trunc", "try_add", "try_divide", "try_multiply", "try_subtract", "typeof", "unix_micros", "year",
    }
)  # fmt: skip
"""Functions in the SQL that pruning itself writes."""

_CALL = re.compile(r"\b([a-z_]+)\(")
_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."

_builtins: dict[tuple[Any, str], Any] = {}
"""Cached catalog results for Spark's own functions, by JVM and name; all sessions share one object for each."""


def called_functions(tree: Expr) -> list[str]:
    """Return the names of all functions in a tree from ``parse``, in lower case."""
    names = [call.name.lower() for call in tree.find_all(exp.Anonymous)]
    return list(dict.fromkeys(names + (["if"] if tree.find(exp.If) else [])))


def nondeterminism_reason(accepted: DataFrame, tree: Expr, hidden: frozenset[str] = frozenset()) -> str | None:
    """Return why the result for a row of ``accepted`` depends on the other rows and files read, or None.

    ``rand()`` draws a number for each row, so it gives a random sample of whatever rows are read. ``rand(42)`` gives
    each row of a task the next number, so a skipped file changes the numbers of other rows.

    Args:
        accepted: table filtered by the predicate.
        tree: result of ``parse``.
        hidden: names of Spark's functions that this session has replaced by its own.
    """
    draws = False
    for call in tree.find_all(exp.Anonymous):
        name = call.name.lower()
        if name in POSITION_FUNCTIONS:
            return f"{name}() depends on where a row is read"
        if name in RANDOM_FUNCTIONS:
            if len(call.expressions) > RANDOM_FUNCTIONS[name]:
                return f"{name}() with a seed gives another value to a row that is read elsewhere"
            draws = True
    if draws and REPEATABLE.union(RANDOM_FUNCTIONS).difference(hidden).issuperset(called_functions(tree)):
        return None
    try:
        certain = accepted._jdf.queryExecution().analyzed().condition().deterministic()
    except Exception:  # Spark Connect shows no plan; the names were checked above
        certain = not draws
    return None if certain else "Spark says that it is not deterministic"


def own_functions_in(sql: Iterable[str]) -> frozenset[str]:
    """Return the functions of ``OWN`` that pruning's own SQL calls; a literal that looks like a call counts as one."""
    return OWN.intersection(name for text in sql for name in _CALL.findall(text))


def hidden_functions(spark: SparkSession, names: Iterable[str]) -> frozenset[str]:
    """Return the names of Spark's functions that this session has replaced by ``spark.udf.register``."""
    try:
        catalog = spark._jsparkSession.sessionState().catalog()
    except Exception:  # Spark Connect
        return frozenset(name for name in _not_listed(spark, names) if not _described_as_sparks_own(spark, name))
    return frozenset(name for name in names if not _is_sparks_own(spark, catalog, name))


def _is_sparks_own(spark: SparkSession, catalog: Any, name: str) -> bool:
    entry = catalog.lookupBuiltinOrTempFunction(name)
    key = (spark._jvm, name)
    known = _builtins.get(key)
    if known is not None and known.equals(entry):
        return True
    own = not entry.isEmpty() and str(entry.get().getClassName()).startswith(_SPARKS_OWN)
    if own:
        _builtins[key] = entry
    return own


def _not_listed(spark: SparkSession, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a list of the session's functions does not confirm as Spark's own.

    One call lists all functions, while a description needs one call for each.
    """
    asked = frozenset(names)
    if not asked:
        return asked
    try:
        listed = spark.catalog.listFunctions(pattern="|".join(sorted(asked)))
    except Exception:  # a server without patterns
        return asked
    sparks = {one.name.lower() for one in listed if not one.namespace and one.className.startswith(_SPARKS_OWN)}
    others = {one.name.lower() for one in listed if one.namespace or not one.className.startswith(_SPARKS_OWN)}
    return asked - (sparks - others)


def _described_as_sparks_own(spark: SparkSession, name: str) -> bool:
    try:
        rows = spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()
    except Exception:  # no such function
        return False
    return any(str(row[0]).startswith(f"Class: {_SPARKS_OWN}") for row in rows)
