"""Replace the parameter markers of a statement, ``:name`` and ``?``, by the literals that Spark uses for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.pruning.plain_sql.catalyst import find_query, plan_query
from dbt_zorder.spark.jvm import items, sql_parser
from dbt_zorder.spark.sql import NO_CODE

Args = Mapping[str, Any] | Sequence[Any]
"""Values as ``spark.sql`` accepts them: by name, or in order."""

_TOKEN = re.compile(
    rf"""{NO_CODE}|(?P<other>::|\w:(?!:))|:(?P<name>\w+)|(?P<place>\?)""",
    re.DOTALL,
)


def with_literals(spark: SparkSession, sql: str, args: Args) -> str | None:
    """Return a statement with a literal for each of its markers; None if a marker or a value has no counterpart.

    The result may differ from the statement that Spark makes: ``is_same`` compares the two.

    Args:
        spark: session in this process.
        sql: statement with markers.
        args: values of the markers.
    """
    named = isinstance(args, Mapping)
    literals = _literals(spark, [*args.values()] if isinstance(args, Mapping) else [*args])
    by_name = dict(zip(args, literals, strict=True)) if named else {}
    waiting = iter([] if named else literals)
    missing = False

    def literal(found: re.Match[str]) -> str:
        nonlocal missing
        if not (found["name"] or found["place"]):
            return found[0]
        text = by_name.get(found["name"]) if found["name"] else next(waiting, None)
        missing = missing or text is None
        return f" {text} "

    text = _TOKEN.sub(literal, sql)
    return None if missing or next(waiting, None) is not None else text


def is_same(spark: SparkSession, sql: str, args: Args, text: str) -> bool:
    """Return whether a query with values and another text give the same plan with the same columns.

    Return False for a command, because ``spark.sql`` would execute it.
    """
    parsed = sql_parser(spark).parsePlan(text)
    if find_query(spark, parsed) is not parsed:
        return False
    given: Any = args
    with_args = spark.sql(sql, given)._jdf.queryExecution().analyzed()
    plain = plan_query(spark, parsed).analyzed()
    return bool(with_args.sameResult(plain)) and bool(with_args.schema().equals(plain.schema()))


def _literals(spark: SparkSession, values: Sequence[Any]) -> list[str]:
    """Return values as Spark writes them in SQL."""
    if not values:
        return []
    columns = [value if isinstance(value, Column) else f.lit(value) for value in values]
    named = [column.alias(f"p{number}") for number, column in enumerate(columns)]
    analyzed = spark.range(1).select(*named)._jdf.queryExecution().analyzed()
    return [str(alias.child().sql()) for alias in items(analyzed.expressions())]
