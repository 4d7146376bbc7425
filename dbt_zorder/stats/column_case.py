"""Drop statistics of columns that a file spells in another case than its table.

With ``spark.sql.caseSensitive`` Spark reads such a column as NULL, and without it as the values of the file. Statistics
of one kind of session therefore prove nothing to the other. Our own files spell columns as their tables do.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField

from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive
from dbt_zorder.spark.conf import CASE_SENSITIVE, settings, sibling_session
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.collect import row_stats
from dbt_zorder.stats.schema import with_measures

_LOG = logging.getLogger("dbt_zorder")


def without_misspelled(stats: DataFrame, table: str, columns: Sequence[ResolvedColumn]) -> DataFrame:
    """Return statistics without those of files in which a session of the other kind reads another column.

    Count the NULL values again in such a session. Where the counts agree, it reads the same column, or both sessions
    read only NULL.

    Args:
        stats: the stats of a table's files, in the shape of ``stats_schema``.
        table: the name of the table in SQL.
        columns: the columns of the stats.
    """
    spark = stats.sparkSession
    counts = {column.name: f"nulls{number}" for number, column in enumerate(columns)}
    try:
        counted = _nulls_by_the_other(spark, table, columns)
    except Exception as exc:
        _LOG.warning(
            "The stats of %s are not used for its columns: with %s=%s, which would have to read the same, it cannot be "
            "read: %s", table, CASE_SENSITIVE, not case_sensitive(spark), in_one_line(exc),
        )  # fmt: skip
        counted = []

    def alike(field: StructField, low: str, high: str, nulls: str) -> tuple[str, str, str]:
        same = f"{counts[field.name]} <=> {nulls}"  # false for a file that the other session did not read
        return f"if({same}, {low}, NULL)", f"if({same}, {high}, NULL)", f"if({same}, {nulls}, NULL)"

    types = ", ".join(f"{name} BIGINT" for name in counts.values())
    others = spark.createDataFrame(counted, f"file_path STRING, {types}")
    return with_measures(stats.join(f.broadcast(others), "file_path", "left"), alike).drop(*counts.values())


def _nulls_by_the_other(spark: SparkSession, table: str, columns: Sequence[ResolvedColumn]) -> list[Row]:
    """Return path and NULL counts of each file, read by a session with the opposite case sensitivity."""
    other = {CASE_SENSITIVE: str(not case_sensitive(spark)).lower()}
    other_session = sibling_session(spark, other)
    if other_session is not None:
        return _nulls(other_session, table, columns)
    with settings(spark, other):  # no other session is available
        return _nulls(spark, table, columns)


def _nulls(spark: SparkSession, table: str, columns: Sequence[ResolvedColumn]) -> list[Row]:
    stats = row_stats(spark.table(table), columns, "")
    return stats.select("file_path", *(f"columns.{quote_name(column.name)}.null_count" for column in columns)).collect()
