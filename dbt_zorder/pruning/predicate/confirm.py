"""Ask Spark whether a predicate is valid, and whether our tree of it means the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, IntegerType, LongType

from dbt_zorder.errors import ColumnError, PredicateError, UnresolvedError, did_you_mean
from dbt_zorder.pruning.condition.bounds import typed_nodes
from dbt_zorder.pruning.condition.cases import branches
from dbt_zorder.pruning.condition.constants import cast_types, compared_constants
from dbt_zorder.pruning.predicate.tree import Column, Literal, Negative, Node, to_sql
from dbt_zorder.spark.columns import leaf_names
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.jvm import has_jvm, sql_parser
from dbt_zorder.spark.messages import first_line

_INTEGER_DIGITS, _LONG_DIGITS = 9, 18
"""Maximum numbers of digits that always fit INT and BIGINT; a number of ten digits is one or the other."""

_DATE = re.compile(r"DATE *'[^']*'", re.IGNORECASE)
_UNRESOLVED = re.compile(r"with name (.+?) cannot be resolved")
_ABSENT = ("[TABLE_OR_VIEW_NOT_FOUND", "[UNRESOLVED_ROUTINE")
"""Spark's error classes for a missing table, view or function."""


def filter_rows(frame: DataFrame, predicate: str, *, has_query: bool = False) -> DataFrame:
    """Return ``frame`` filtered by the user's own text, which Spark analyses as one whole expression.

    Args:
        frame: table to filter.
        predicate: user's text.
        has_query: whether the text contains a subquery.

    Raises:
        ColumnError: a column does not exist.
        UnresolvedError: a table, a view, a function, or a name in a subquery does not exist. The text is still one
            whole expression, because Spark parses it before it resolves names.
        PredicateError: Spark refuses the predicate for any other reason.
    """
    try:
        return analyse(frame.where(predicate))
    except (AnalysisException, ParseException) as exc:
        raise _explained(frame, predicate, exc, has_query=has_query) from exc


def analyse(frame: DataFrame) -> DataFrame:
    """Return a DataFrame that Spark has analysed. Over Spark Connect, force the analysis, which is lazy there."""
    if not has_jvm(frame.sparkSession):
        frame.schema  # noqa: B018
    return frame


def is_confirmed(frame: DataFrame, accepted: DataFrame, tree: Node, predicate: str = "") -> bool:
    """Return whether Spark confirms that the tree, written with all its parentheses, is the predicate in ``accepted``.

    This catches every difference between sqlglot's grammar and Spark's: precedence, escapes, comments, literals. If
    names are written as the schema writes them, Spark's parser gives the same expression for both texts. That check
    needs no analysis.

    Args:
        frame: unfiltered table.
        accepted: table filtered by ``predicate``.
        tree: our tree of the predicate.
        predicate: user's own text; empty if texts may not be compared.
    """
    if predicate and _parse_alike(frame, predicate, to_sql(tree)):
        return True
    for is_not_null in (True, False):
        try:
            if accepted.sameSemantics(frame.where(to_sql(tree, is_not_null=is_not_null))):
                return True
        except PySparkException:
            continue
    return False


def _parse_alike(frame: DataFrame, one: str, other: str) -> bool:
    try:
        parser = sql_parser(frame.sparkSession)
        return parser is not None and bool(parser.parseExpression(one).equals(parser.parseExpression(other)))
    except Exception:  # another version of Spark, or no JVM in this process
        return False


def read_types(spark: SparkSession, tree: Node) -> dict[str, DataType]:
    """Return Spark's type of every compared constant, of every cast's target, and of every function with bounds.

    The text of a function's type is a second key of it. Spark is asked for all but literals whose type does not depend
    on the session's settings.
    """
    functions = list(typed_nodes(tree))
    parts = [branch.value for node in functions for branch in branches(node) if not branch.value.columns()]
    constants = {"TRUE": Literal("TRUE"), **{to_sql(node): node for node in (*compared_constants(tree), *parts)}}
    plain = {sql: _plain_type(node) for sql, node in constants.items()}
    found = {sql: kind for sql, kind in plain.items() if kind is not None}
    asked = {sql: sql for sql in constants if sql not in found}
    asked.update({kind: f"CAST(NULL AS {kind})" for kind in sorted(cast_types(tree))})
    asked.update({to_sql(node): to_sql(node, column=_null_of) for node in functions})
    if not asked:
        return found
    found |= dict(zip(asked, _types(spark, asked.values()), strict=True))
    return found | {type_ddl(found[sql]): found[sql] for sql in map(to_sql, functions)}


def _null_of(column: Column) -> str:
    return f"CAST(NULL AS {type_ddl(column.data_type)})"


def _plain_type(node: Node) -> DataType | None:
    """Return the type of a literal that has the same type in every version of Spark; None for others."""
    if isinstance(node, Negative):
        return _plain_type(node.child) if isinstance(node.child, Literal) and node.child.sql.isdecimal() else None
    if not isinstance(node, Literal):
        return None
    if node.sql.isascii() and node.sql.isdecimal():
        digits = len(node.sql.lstrip("0"))
        return IntegerType() if digits <= _INTEGER_DIGITS else LongType() if 10 < digits <= _LONG_DIGITS else None
    if node.sql in ("TRUE", "FALSE"):
        return BooleanType()
    return DateType() if _DATE.fullmatch(node.sql) else None


def _types(spark: SparkSession, expressions: Iterable[str]) -> list[DataType]:
    listed = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(expressions))
    return [field.dataType for field in spark.sql(f"SELECT {listed}").schema.fields]


def _explained(
    frame: DataFrame, predicate: str, exc: PySparkException, *, has_query: bool
) -> PredicateError | ColumnError:
    refused = f"Spark refuses the predicate {predicate!r}: {first_line(exc)}"
    name = _UNRESOLVED.search(str(exc))
    # a column that a subquery lacks may belong to any table, even to one that is yet to be rebuilt
    if not isinstance(exc, ParseException) and (str(exc).startswith(_ABSENT) or (name is not None and has_query)):
        return UnresolvedError(refused)
    if name:
        given = name[1].replace("`", "")
        known = leaf_names(frame.schema)
        hint = did_you_mean(given, known)
        return ColumnError(
            f"There is no column '{given}' in the predicate {predicate!r}.{hint} Columns: {', '.join(known)}."
        )
    return PredicateError(refused)
