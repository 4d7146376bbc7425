"""Spark's word on a predicate: whether it is valid, and whether our tree of it means the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, IntegerType, LongType

from dbt_zorder.errors import ColumnError, PredicateError, UnresolvedError, did_you_mean
from dbt_zorder.pruning.condition.constants import cast_types, compared_constants
from dbt_zorder.pruning.predicate.tree import Literal, Negative, Node, to_sql
from dbt_zorder.spark.columns import leaf_names
from dbt_zorder.spark.jvm import has_jvm, sql_parser
from dbt_zorder.spark.messages import first_line

_INTEGER_DIGITS, _LONG_DIGITS = 9, 18
"""So many digits always fit; a number of ten is one or the other."""

_DATE = re.compile(r"DATE *'[^']*'", re.IGNORECASE)
_UNRESOLVED = re.compile(r"with name (.+?) cannot be resolved")
_ABSENT = ("[TABLE_OR_VIEW_NOT_FOUND", "[UNRESOLVED_ROUTINE")
"""What Spark calls it if a table, a view or a function is not there."""


def filtered(frame: DataFrame, predicate: str, *, has_query: bool = False) -> DataFrame:
    """Return ``frame`` filtered by the user's own text, analysed by Spark as one whole expression.

    Args:
        frame: the table.
        predicate: the text.
        has_query: there is a subquery in it.

    Raises:
        ColumnError: a column does not exist.
        UnresolvedError: a table, a view or a function does not, or something that a subquery names; the text is one
            whole expression all the same, as Spark parses it before it looks.
        PredicateError: Spark refuses the predicate for any other reason.
    """
    try:
        return analysed(frame.where(predicate))
    except (AnalysisException, ParseException) as exc:
        raise _explained(frame, predicate, exc, has_query=has_query) from exc


def analysed(frame: DataFrame) -> DataFrame:
    """Return a DataFrame that Spark has analysed: it has at once, but over Spark Connect not before it is asked."""
    if not has_jvm(frame.sparkSession):
        frame.schema  # noqa: B018
    return frame


def agrees(frame: DataFrame, accepted: DataFrame, tree: Node, predicate: str = "") -> bool:
    """Tell whether Spark finds the tree, written with all its parentheses, to be the predicate in ``accepted``.

    This catches every difference between sqlglot's grammar and Spark's: precedence, escapes, comments, literals. Where
    names are written as the schema writes them, Spark's parser makes the same of both texts, which takes no analysis.

    Args:
        frame: the table.
        accepted: the table filtered by ``predicate``.
        tree: what was made of it.
        predicate: the user's own text, if it may be compared as such.
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
    except Exception:  # another version of Spark, or none in this process
        return False


def types_of(spark: SparkSession, tree: Node) -> dict[str, DataType]:
    """Return Spark's type of every constant that is compared, and of every type that something is cast to.

    Spark is asked for all but literals that have one type whatever the session's settings are.
    """
    constants = {"TRUE": Literal("TRUE"), **{to_sql(node): node for node in compared_constants(tree)}}
    plain = {sql: _plain_type(node) for sql, node in constants.items()}
    found = {sql: kind for sql, kind in plain.items() if kind is not None}
    asked = {sql: sql for sql in constants if sql not in found}
    asked.update({kind: f"CAST(NULL AS {kind})" for kind in sorted(cast_types(tree))})
    return {**found, **dict(zip(asked, _types(spark, asked.values()), strict=True))} if asked else found


def _plain_type(node: Node) -> DataType | None:
    """Return the type of a literal of which every version of Spark makes the same; None if Spark is to be asked."""
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
    # a column that a subquery lacks may be any table's, and a table's that is yet to be built anew
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
