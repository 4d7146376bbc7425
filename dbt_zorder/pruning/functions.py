"""Functions that a predicate calls: those of which a row's answer depends on the rows beside it, and hidden ones."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from dbt_zorder.pruning.constants import CHANCE, PLACES, REPEATABLE
from dbt_zorder.pruning.parse import Expr

OWN = frozenset(
    {
        "aggregate", "array", "array_except", "coalesce", "concat", "date_add", "date_format", "date_sub", "endswith",
        "get", "if", "length", "lpad", "sort_array", "split", "startswith", "substring", "timestamp_millis", "trunc",
        "typeof", "year",
    }
)  # fmt: skip
"""Functions in the SQL that pruning itself writes."""

_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."


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


def hidden(spark: SparkSession, names: Iterable[str]) -> frozenset[str]:
    """Return which of some names of Spark's functions mean another one in this session, by ``spark.udf.register``."""
    asked = set(names) & REPEATABLE
    try:
        catalog = spark._jsparkSession.sessionState().catalog()
    except Exception:  # Spark Connect: each name is a call of the server, so only those that the predicate has
        return frozenset(name for name in asked if not _described_as_sparks_own(spark, name))
    found = []
    for name in asked | OWN:
        entry = catalog.lookupBuiltinOrTempFunction(name)
        if entry.isEmpty() or not str(entry.get().getClassName()).startswith(_SPARKS_OWN):
            found.append(name)
    return frozenset(found)


def _described_as_sparks_own(spark: SparkSession, name: str) -> bool:
    try:
        rows = spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()
    except Exception:  # there is none
        return False
    return any(str(row[0]).startswith(f"Class: {_SPARKS_OWN}") for row in rows)
