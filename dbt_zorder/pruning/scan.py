"""Read a table without the files that cannot match."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import UnresolvedError
from dbt_zorder.pruning.files.table_facts import quoted
from dbt_zorder.pruning.plan import SUBSTITUTED, VARIABLE, make_plan
from dbt_zorder.pruning.predicate.parse import has_double_quotes, without_trailing_comment
from dbt_zorder.spark.conf import ANSI, is_on
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")


def scan(spark: SparkSession, table: str, predicate: str) -> DataFrame:
    """Return the rows of ``table`` for which ``predicate`` is TRUE, without opening files that cannot contain any.

    Examples:
        >>> scan(spark, "shop.orders", "order_id = 42").count()
        1

    Args:
        spark: reader's session.
        table: ``t``, ``db.t`` or ```db`.`t```; a view or a table without statistics is read in full.
        predicate: one boolean SQL expression over the table's columns.

    Raises:
        PredicateError: the predicate is not one boolean expression, or Spark refuses it.
        ColumnError: the predicate names a column that does not exist.
    """
    return make_plan(spark, table, predicate).rows


def scan_sql(spark: SparkSession, relation_sql: str, predicate: str, alias: str | None = None) -> str:
    """Return a subquery for a FROM clause with the rows of ``relation_sql`` for which ``predicate`` is TRUE.

    The text of the predicate stays unchanged, between parentheses that it cannot close: sqlglot and Spark have parsed
    it as one whole expression. The exception is ``${...}``, which Spark replaces when the query runs. Such a predicate
    leads to a full read. So does one with a table, a view or a function that does not exist yet. It may be a CTE of the
    query, or a hook may create it, so only the query can judge it.

    Examples:
        >>> rows = scan_sql(spark, "shop.orders", "order_id = 42", "o")
        >>> spark.sql(f"SELECT o.order_id FROM {rows}").collect()
        [Row(order_id=42)]

    Args:
        spark: reader's session, which will run the SQL text.
        relation_sql: table name, as for :func:`scan`.
        predicate: boolean SQL expression, as for :func:`scan`; ``alias`` may qualify its columns.
        alias: name of the subquery.
    """
    inside = f" AS {quote_name(alias)}" if alias else ""
    exclusion = _exclusion(spark, relation_sql, predicate, alias)
    # no test in the query can check whether "x" is still a text, as it was here, or a column
    certain = not (is_on(spark, ANSI) and has_double_quotes(predicate))
    tests = [exclusion] if exclusion and certain else []
    tests.append(f"({without_trailing_comment(predicate)}\n)")
    return f"(SELECT * FROM {quoted(relation_sql)}{inside} WHERE {' AND '.join(tests)}){inside}"


def _exclusion(spark: SparkSession, relation_sql: str, predicate: str, alias: str | None) -> str | None:
    """Return SQL that excludes files; None if all are read."""
    if isinstance(predicate, str) and VARIABLE in predicate:
        _LOG.info("%s: all files are read: %s", relation_sql, SUBSTITUTED)
        return None
    try:
        return make_plan(spark, relation_sql, predicate, alias=alias).exclusion
    except UnresolvedError as exc:
        _LOG.info(
            "%s: all files are read, as the predicate cannot be judged before the query runs: %s", relation_sql, exc
        )
        return None
