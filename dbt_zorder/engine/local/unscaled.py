"""Decimals that Spark sends without their point, as whole numbers, which it makes in a third of the time.

Figures are in docs/decisions/020.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from dbt_zorder.spark.jvm import class_named, jvm_of

_CATALYST = "org.apache.spark.sql.catalyst"
_COLUMNS = "org.apache.spark.sql.classic.ExpressionUtils"
"""Makes columns of expressions since Spark 4; before, a column's own class did."""


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
    """Return what makes a column of an expression."""
    try:
        found = class_named(jvm, _COLUMNS).column
        found(expression)
    except Exception:  # Py4J's, or Python's TypeError where there is a package of that name at most
        return class_named(jvm, "org.apache.spark.sql.Column")
    return found
