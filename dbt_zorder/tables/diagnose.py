"""Measure the health of a table of any format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt_zorder import option_parsers as values
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.health import FileFacts, TableHealth, health_of
from dbt_zorder.tables.registry import existing, open_table
from dbt_zorder.tables.save import name_of

_PLAIN = re.compile(r"\w+")


def health(
    spark: SparkSession, table: str, columns: str | Sequence[str] | None = None, *, file_size: str | int = "auto"
) -> TableHealth:
    """Return the health of a Parquet, Delta Lake or Iceberg table from statistics and footers, without its rows.

    Examples:
        >>> health(spark, "shop.orders").columns["order_id"].deepest
        2

    Args:
        spark: the session.
        table: ``orders``, in the current schema, or ``sales.orders``.
        columns: 1 to 8 columns to examine; by default those that dbt-zorder clustered the table by.
        file_size: the file size that a rewrite would aim at: ``auto``, bytes, or a text like ``64MB``.

    Raises:
        ZorderError: the table does not exist, is a view, or has another format.
        ColumnError, ConfigError: an argument is not allowed.
    """
    names = values.optional("columns", columns, values.column_names, ())
    spec = LayoutSpec(by=names, file_size=values.read("file_size", file_size, values.file_size))
    return measure_health(spark, name_of(spark, table), names, spec)


def measure_health(
    spark: SparkSession,
    table: TableName,
    names: Sequence[str],
    spec: LayoutSpec,
    *,
    is_modelled: bool = False,
) -> TableHealth:
    """Return the same for a table by its parsed name.

    Args:
        spark: the session.
        table: name of the table.
        names: columns to examine; by default those that the table, or else ``spec``, is clustered by.
        spec: settings of a rewrite.
        is_modelled: whether a model with ``zorder_by`` builds the table, so that ``zorder_optimize`` rewrites it.
    """
    found = existing(open_table(spark, table), table)
    facts = found.facts(names)
    if not facts.keys and spec.by:
        facts = found.facts(spec.by)
    by = [key.column.name if _PLAIN.fullmatch(key.column.name) else key.column.sql for key in facts.keys]
    return health_of(table, facts, replace(spec, by=by), _command(table, facts, by, is_modelled=is_modelled))


def _command(table: TableName, facts: FileFacts, by: Sequence[str], *, is_modelled: bool) -> str:
    """Return the command that rewrites a table; empty without columns to cluster it by."""
    if facts.is_own or is_modelled:
        return _operation(f"{{model: {table}, dry_run: false}}")
    if facts.command or not by:
        return facts.command
    return _operation(f"{{model: {table}, zorder_by: {json.dumps(list(by))}, dry_run: false}}")


def _operation(arguments: str) -> str:
    return f"dbt run-operation zorder_optimize --args '{arguments}'"
