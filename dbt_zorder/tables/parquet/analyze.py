"""Recompute ``ANALYZE TABLE`` statistics, which the catalog drops when a table's location changes."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.catalog_entry import change_entry
from dbt_zorder.spark.conf import is_on
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")
_BY_ROWS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")
"""With either setting, the planner derives a table's bytes from its number of rows."""
_ROWS = re.compile(r"(\d+) rows")


@dataclass(frozen=True)
class Analyzed:
    """The catalog statistics that a table had.

    Attributes:
        columns: names of the columns with statistics of their own.
    """

    columns: tuple[str, ...] = ()


def analyzed(spark: SparkSession, table: TableName, info: TableInfo | None) -> Analyzed | None:
    """Return the statistics that a table has in the catalog; None if it has none."""
    rows = _ROWS.search(info.statistics) if info is not None else None
    if info is None or info.is_view or rows is None or rows[1] == "0":
        return None  # Hive reports "0 rows" for a table that was never analyzed
    columns = [name for name, _, _ in info.columns if _has_statistics(spark, table, name)]
    return Analyzed(tuple(columns))


def analyze_again(
    spark: SparkSession, table: TableName, before: Analyzed | None, columns: list[str], *, partitioned: bool
) -> None:
    """Recompute a table's former statistics, for those of their columns that still exist.

    Only the planner uses them, so a failure is a warning and not a failed build. For a partitioned table they are
    computed only if the planner derives bytes from rows. Spark adds up the bytes of the partitions in the catalog. The
    catalog has none, so Spark would broadcast a table of zero bytes. Without statistics it uses the sizes of the files.
    """
    if before is None or (partitioned and not any(is_on(spark, key) for key in _BY_ROWS)):
        return
    left = [name for name in before.columns if name in columns]
    clause = f" FOR COLUMNS {', '.join(quote_name(name) for name in left)}" if left else ""
    try:
        statement = f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS{clause}"
        change_entry(spark, table.schema, table.identifier, statement)
    except Exception as exc:
        _LOG.warning("The statistics of %s were lost and could not be computed again: %s", table, in_one_line(exc))


def measure_again(
    spark: SparkSession, table: TableName, before: Analyzed | None, columns: list[str], *, partitioned: bool
) -> None:
    """Update the statistics of a table after rows were added: all former ones, or only its size in bytes.

    A size that is too small would let the planner broadcast a table that has grown. Partitioned tables have no size
    there.
    """
    if before is not None or partitioned:
        analyze_again(spark, table, before, columns, partitioned=partitioned)
        return
    try:
        statement = f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS NOSCAN"
        change_entry(spark, table.schema, table.identifier, statement)
    except Exception as exc:
        _LOG.warning("The size of %s in the catalog could not be brought up to date: %s", table, in_one_line(exc))


def _has_statistics(spark: SparkSession, table: TableName, column: str) -> bool:
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table.sql} {quote_name(column)}").collect()
    except Exception:  # its type has no statistics
        return False
    return any(row[0] == "distinct_count" and row[1] not in (None, "NULL") for row in rows)
