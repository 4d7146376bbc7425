"""Functions that a predicate calls: those of which a row's answer depends on the rows beside it, and hidden ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from dbt_zorder.pruning.condition.constants import CHANCE, PLACES
from dbt_zorder.pruning.predicate.parse import Expr

OWN = frozenset(
    {
        "aggregate", "array", "array_except", "coalesce", "collect_list", "concat", "count", "count_if", "date_add",
        "date_format", "date_sub", "endswith", "first", "get", "if", "length", "lpad", "sort_array", "split",
        "startswith", "struct", "substring", "sum", "timestamp_millis", "trunc", "typeof", "year",
    }
)  # fmt: skip
"""Functions in the SQL that pruning itself writes."""

_CALL = re.compile(r"\b([a-z_]+)\(")
_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."

_found: dict[tuple[Any, str], Any] = {}
"""By JVM and name: what a session's catalog gives for a function of Spark's own, one object for all sessions."""


def called(tree: Expr) -> list[str]:
    """Return the names of all functions in what ``parse`` gave, in lower case."""
    names = [call.name.lower() for call in tree.find_all(exp.Anonymous)]
    return list(dict.fromkeys(names + (["if"] if tree.find(exp.If) else [])))


def of_chance(accepted: DataFrame, names: Iterable[str]) -> str | None:
    """Return why a row of ``accepted``, the filtered table, may pass or not by the rows and files that are read beside.

    ``rand(42)`` gives each row of a task the next number, so another row where a file is left out.
    """
    for name in names:
        if name in CHANCE:
            return f"{name}() gives another value at each call, or to a row that is read elsewhere"
        if name in PLACES:
            return f"{name}() depends on where a row is read"
    try:
        certain = accepted._jdf.queryExecution().analyzed().condition().deterministic()
    except Exception:  # Spark Connect has no plan to look at; the names were known
        certain = True
    return None if certain else "Spark says that it is not deterministic"


def own_calls(sql: Iterable[str]) -> frozenset[str]:
    """Return which functions of ``OWN`` texts of pruning's own call; a literal that looks like a call counts as one."""
    return OWN.intersection(name for text in sql for name in _CALL.findall(text))


def hidden(spark: SparkSession, names: Iterable[str]) -> frozenset[str]:
    """Return which of some names of Spark's functions mean another one in this session, by ``spark.udf.register``."""
    try:
        catalog = spark._jsparkSession.sessionState().catalog()
    except Exception:  # Spark Connect
        return frozenset(name for name in _not_listed(spark, names) if not _described_as_sparks_own(spark, name))
    return frozenset(name for name in names if not _is_sparks_own(spark, catalog, name))


def _is_sparks_own(spark: SparkSession, catalog: Any, name: str) -> bool:
    entry = catalog.lookupBuiltinOrTempFunction(name)
    key = (spark._jvm, name)
    known = _found.get(key)
    if known is not None and known.equals(entry):
        return True
    own = not entry.isEmpty() and str(entry.get().getClassName()).startswith(_SPARKS_OWN)
    if own:
        _found[key] = entry
    return own


def _not_listed(spark: SparkSession, names: Iterable[str]) -> frozenset[str]:
    """Return those of some names that a list of the session's functions does not give for Spark's own alone.

    The list of all takes one call, where each that is described takes one of its own.
    """
    asked = frozenset(names)
    if not asked:
        return asked
    try:
        listed = spark.catalog.listFunctions(pattern="|".join(sorted(asked)))
    except Exception:  # a server that does not know patterns
        return asked
    sparks = {one.name.lower() for one in listed if not one.namespace and one.className.startswith(_SPARKS_OWN)}
    others = {one.name.lower() for one in listed if one.namespace or not one.className.startswith(_SPARKS_OWN)}
    return asked - (sparks - others)


def _described_as_sparks_own(spark: SparkSession, name: str) -> bool:
    try:
        rows = spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()
    except Exception:  # there is none
        return False
    return any(str(row[0]).startswith(f"Class: {_SPARKS_OWN}") for row in rows)
