"""Decimals that Spark sends without their point, as whole numbers, which it makes in a third of the time.

Figures are in docs/decisions/020.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from dbt_zorder.jvm import class_named, jvm_of

_CATALYST = "org.apache.spark.sql.catalyst"
_COLUMN_OF = ("org.apache.spark.sql.classic.ExpressionUtils", "column"), ("org.apache.spark.sql.Column", "")
"""What makes a column of an expression: since Spark 4, and before."""


def unscaled(df: DataFrame, names: Collection[str]) -> Any:
    """Return a query as the JVM has it, in which some decimals of up to 18 digits are BIGINT.

    By ``UnscaledValue``, which Spark's own optimizer puts into sums of decimals, and SQL has no name for.

    Args:
        df: the query, whose session's JVM is in this process.
        names: of columns that are decimals; no two columns have one name.

    Raises:
        Exception: of Py4J's, another version of Spark lacks something.
    """
    jvm, query = jvm_of(df.sparkSession), df._jdf
    if not names:
        return query
    named = class_named(jvm, f"{_CATALYST}.analysis.UnresolvedAttribute").quoted
    without_point = class_named(jvm, f"{_CATALYST}.expressions.UnscaledValue")
    column_of = _column_of(jvm, named(df.columns[0]))
    columns = [
        column_of(without_point(named(name))).alias(name) if name in names else query.col(name) for name in df.columns
    ]
    return query.select(class_named(jvm, "org.apache.spark.api.python.PythonUtils").toSeq(columns))


def _column_of(jvm: Any, expression: Any) -> Any:
    (owner, method), (before, _) = _COLUMN_OF
    try:
        found = getattr(class_named(jvm, owner), method)
        found(expression)
    except Exception:  # py4j.protocol.Py4JError, or Python's for a package that is called
        return class_named(jvm, before)
    return found
