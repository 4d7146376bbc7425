"""Spark's word on a predicate: whether it is valid, and whether our tree of it means the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from dbt_zorder.columns import leaf_names
from dbt_zorder.errors import ColumnError, PredicateError, did_you_mean
from dbt_zorder.pruning.constants import cast_types, compared_constants
from dbt_zorder.pruning.stats_source import first_line
from dbt_zorder.pruning.tree import Node, to_sql

_UNRESOLVED = re.compile(r"with name (.+?) cannot be resolved")


def filtered(frame: DataFrame, predicate: str) -> DataFrame:
    """Return ``frame`` filtered by the user's own text, analysed by Spark as one whole expression.

    Raises:
        ColumnError: a column does not exist.
        PredicateError: Spark refuses the predicate for any other reason.
    """
    try:
        result = frame.where(predicate)
        result.schema  # noqa: B018 - over Spark Connect the analysis happens here
    except (AnalysisException, ParseException) as exc:
        raise _explained(frame, predicate, exc) from exc
    return result


def agrees(frame: DataFrame, accepted: DataFrame, tree: Node) -> bool:
    """Tell whether Spark finds the tree, written with all its parentheses, to be the predicate in ``accepted``.

    This catches every difference between sqlglot's grammar and Spark's: precedence, escapes, comments, literals.
    """
    for is_not_null in (True, False):
        try:
            if accepted.sameSemantics(frame.where(to_sql(tree, is_not_null=is_not_null))):
                return True
        except PySparkException:
            continue
    return False


def types_of(spark: SparkSession, tree: Node) -> dict[str, DataType]:
    """Return Spark's type of every constant that is compared, and of every type that something is cast to."""
    constants = list(dict.fromkeys(["TRUE", *(to_sql(node) for node in compared_constants(tree))]))
    casts = sorted(cast_types(tree))
    return dict(
        zip([*constants, *casts], _types(spark, [*constants, *(f"CAST(NULL AS {c})" for c in casts)]), strict=True)
    )


def _types(spark: SparkSession, expressions: Iterable[str]) -> list[DataType]:
    listed = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(expressions))
    return [field.dataType for field in spark.sql(f"SELECT {listed}").schema.fields]


def _explained(frame: DataFrame, predicate: str, exc: PySparkException) -> PredicateError | ColumnError:
    name = _UNRESOLVED.search(str(exc))
    if name:
        given = name[1].replace("`", "")
        known = leaf_names(frame.schema)
        hint = did_you_mean(given, known)
        return ColumnError(
            f"There is no column '{given}' in the predicate {predicate!r}.{hint} Columns: {', '.join(known)}."
        )
    return PredicateError(f"Spark refuses the predicate {predicate!r}: {first_line(exc)}")
