"""Set the comments of tables and columns where they differ from the requested ones."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_entry import change_entry
from dbt_zorder.spark.columns import fold_case
from dbt_zorder.spark.sql import quote_name, quote_string


def set_comments(spark: SparkSession, table: TableName, comment: str | None, columns: Mapping[str, str]) -> int:
    """Set the comments of a table and its columns; return the number of statements executed.

    Args:
        spark: the session.
        table: a table of any format whose columns Spark can alter; a view gets its comments when it is created.
        comment: the table's comment; None keeps the current one.
        columns: comments by column name, spelled as in the table; other columns keep theirs. Partition columns also
            keep theirs, because Spark cannot alter them.
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
    """Return the column descriptions of a model's properties, by the table's own spelling of the names.

    A property with ``quote: true`` matches a column by its exact case. Others ignore case, unless the session is case
    sensitive.

    Args:
        columns: properties by column name, with ``description`` and ``quote``.
        names: names of the table's columns.
        sensitive: value of ``spark.sql.caseSensitive``.
    """
    found: dict[str, str] = {}
    for given, facts in columns.items():
        for name in names:
            exact = sensitive or bool(facts.get("quote"))
            if fold_case(name, sensitive=exact) == fold_case(given, sensitive=exact):
                found[name] = str(facts.get("description") or "")
    return found
