"""Comments on tables and columns, changed where they are not what they should be."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_entry import change_entry
from dbt_zorder.spark.columns import fold_case
from dbt_zorder.spark.sql import quote_name, quote_string


def set_comments(spark: SparkSession, table: TableName, comment: str | None, columns: Mapping[str, str]) -> int:
    """Give a table and its columns the comments that they should have; return how many statements that took.

    Args:
        spark: the session.
        table: one of any format whose columns Spark can alter; a view gets its comments when it is made.
        comment: of the table; None leaves the one it has.
        columns: comments by the column's name, spelled as the table spells it; others keep theirs. So do partition
            columns, which Spark does not alter: they have those that the table was made with.
    """
    info = describe(spark, table)
    if info is None or info.is_view:
        return 0
    statements = []
    if comment is not None and comment != info.comment:
        statements.append(f"COMMENT ON TABLE {table.sql} IS {quote_string(comment)}")
    for name, _, there in info.columns:
        wanted = columns.get(name)
        if wanted is not None and wanted != there and name not in info.partition_columns:
            column = quote_name(name)
            statements.append(f"ALTER TABLE {table.sql} ALTER COLUMN {column} COMMENT {quote_string(wanted)}")
    for statement in statements:
        change_entry(spark, table.schema, table.identifier, statement)
    return len(statements)


def documented(
    columns: Mapping[str, Mapping[str, object]], names: list[str], *, sensitive: bool = False
) -> dict[str, str]:
    """Return the descriptions that a model's properties give the columns of a table, by the table's own spelling.

    A property with ``quote: true`` names a column in its very case; others name it in any, unless case
    distinguishes names in the session.

    Args:
        columns: properties by name, with ``description`` and ``quote``.
        names: of the table's columns.
        sensitive: ``spark.sql.caseSensitive``.
    """
    found: dict[str, str] = {}
    for given, facts in columns.items():
        for name in names:
            exact = sensitive or bool(facts.get("quote"))
            if fold_case(name, sensitive=exact) == fold_case(given, sensitive=exact):
                found[name] = str(facts.get("description") or "")
    return found
