"""Reading a table without the files that cannot match."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.pruning.parse import has_double_quotes, without_trailing_comment
from dbt_zorder.pruning.plan import make_plan
from dbt_zorder.pruning.table_facts import quoted
from dbt_zorder.settings import ANSI, is_on
from dbt_zorder.sql import quote_name


def scan(spark: SparkSession, table: str, predicate: str) -> DataFrame:
    """Return the rows of ``table`` for which ``predicate`` is TRUE, without opening files that cannot hold any.

    Args:
        spark: the reader's session.
        table: ``t``, ``db.t`` or ```db`.`t```; a view or a table without statistics is read in full.
        predicate: one boolean SQL expression over the table's columns.

    Raises:
        PredicateError: the predicate is not one boolean expression, or Spark refuses it.
        ColumnError: it names a column that does not exist.
    """
    return make_plan(spark, table, predicate).rows


def scan_sql(spark: SparkSession, relation_sql: str, predicate: str, alias: str | None = None) -> str:
    """Return a subquery for a FROM clause that holds the rows of ``relation_sql`` for which ``predicate`` is TRUE.

    The text of the predicate stays as it is, between parentheses that it cannot leave: it was parsed, by sqlglot and by
    Spark, as one whole expression.

    Args:
        spark: the reader's session, whose SQL text it will be.
        relation_sql: the table, as :func:`scan` takes it.
        predicate: as for :func:`scan`; columns may be qualified by ``alias``.
        alias: name of the subquery.
    """
    plan = make_plan(spark, relation_sql, predicate, alias=alias)
    inside = f" AS {quote_name(alias)}" if alias else ""
    # no test in the query itself can tell whether "x" is a text there, as it was here, or a column
    certain = not (is_on(spark, ANSI) and has_double_quotes(predicate))
    tests = [plan.exclusion] if plan.exclusion and certain else []
    tests.append(f"({without_trailing_comment(predicate)}\n)")
    return f"(SELECT * FROM {quoted(relation_sql)}{inside} WHERE {' AND '.join(tests)}){inside}"
