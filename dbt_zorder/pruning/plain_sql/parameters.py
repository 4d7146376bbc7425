"""Parameter markers of a statement, ``:name`` and ``?``, and the literals that Spark puts in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.pruning.plain_sql.catalyst import executed, query_of
from dbt_zorder.spark.jvm import items, sql_parser

Args = Mapping[str, Any] | Sequence[Any]
"""As ``spark.sql`` accepts them: values by name, or in order."""

_TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|/\*.*?\*/|--[^\n]*"""  # in which nothing is a marker
    r"""|(?P<other>::|\w:(?!:))|:(?P<name>\w+)|(?P<place>\?)""",
    re.DOTALL,
)


def with_literals(spark: SparkSession, sql: str, args: Args) -> str | None:
    """Return a statement with a literal for each of its markers; None if not all of them are found.

    It may be another statement than Spark makes of it: ``is_same`` compares the two.

    Args:
        spark: a session in this process.
        sql: the statement.
        args: its values.
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
    """Tell whether Spark makes the same plan, with the same columns, of a query with values and of another text.

    Of a command it does not: ``spark.sql`` would carry it out.
    """
    parsed = sql_parser(spark).parsePlan(text)
    if query_of(spark, parsed) is not parsed:
        return False
    given: Any = args
    with_args = spark.sql(sql, given)._jdf.queryExecution().analyzed()
    plain = executed(spark, parsed).analyzed()
    return bool(with_args.sameResult(plain)) and bool(with_args.schema().equals(plain.schema()))


def _literals(spark: SparkSession, values: Sequence[Any]) -> list[str]:
    """Return values as Spark writes them in SQL."""
    if not values:
        return []
    columns = [value if isinstance(value, Column) else f.lit(value) for value in values]
    named = [column.alias(f"p{number}") for number, column in enumerate(columns)]
    analyzed = spark.range(1).select(*named)._jdf.queryExecution().analyzed()
    return [str(alias.child().sql()) for alias in items(analyzed.expressions())]
