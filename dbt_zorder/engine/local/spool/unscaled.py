"""Makes Spark send decimals as unscaled whole numbers, in a third of the time.

Figures are in docs/decisions/020.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from dbt_zorder.spark.jvm import class_named, jvm_of

_CATALYST = "org.apache.spark.sql.catalyst"
_COLUMNS = "org.apache.spark.sql.classic.ExpressionUtils"
"""Makes columns from expressions since Spark 4; before, the class ``Column`` did."""


def unscaled(df: DataFrame, names: Collection[str]) -> Any:
    """Return a query of the JVM in which the named decimals, of up to 18 digits, are BIGINT.

    Uses ``UnscaledValue``, which Spark's optimizer puts into sums of decimals, and which has no name in SQL.

    Args:
        df: query whose session has a JVM that this process can call.
        names: names of decimal columns; all column names are distinct.

    Raises:
        Exception: Py4J's error if another version of Spark lacks a class or method.
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
    """Return the function that makes a column from an expression."""
    try:
        found = class_named(jvm, _COLUMNS).column
        found(expression)
    except Exception:  # Py4J's error, or TypeError if the name is only a package
        return class_named(jvm, "org.apache.spark.sql.Column")
    return found
