"""``ANALYZE TABLE`` statistics: the catalog drops them when a table's location changes, so they are computed again."""

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
"""With one of them, the planner reckons a table's bytes from the number of its rows."""
_ROWS = re.compile(r"(\d+) rows")


@dataclass(frozen=True)
class Analyzed:
    """What had been analyzed of a table.

    Attributes:
        columns: that had statistics of their own.
    """

    columns: tuple[str, ...] = ()


def analyzed(spark: SparkSession, table: TableName, info: TableInfo | None) -> Analyzed | None:
    """Return what statistics a table has in the catalog, None if it has none."""
    rows = _ROWS.search(info.statistics) if info is not None else None
    if info is None or info.is_view or rows is None or rows[1] == "0":
        return None  # Hive says "0 rows" of a table that nobody analyzed
    columns = [name for name, _, _ in info.columns if _has_statistics(spark, table, name)]
    return Analyzed(tuple(columns))


def analyze_again(
    spark: SparkSession, table: TableName, before: Analyzed | None, columns: list[str], *, partitioned: bool
) -> None:
    """Compute the statistics that a table had, for those of its columns that are there still.

    They serve the planner alone: that they cannot be computed is a warning, not a failed build. Of a partitioned table
    they are computed only where the planner goes by its rows: Spark adds up the bytes of the partitions that the
    catalog knows, which are none, and would broadcast a table of no bytes. Without statistics it goes by the files.
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
    """Bring the statistics of a table up to date after rows were added: all that it had, or else its bytes alone.

    Bytes that are too few would let the planner broadcast a table that has grown; of a partitioned one there are none.
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
    except Exception:  # of a type that has none
        return False
    return any(row[0] == "distinct_count" and row[1] not in (None, "NULL") for row in rows)
