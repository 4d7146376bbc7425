"""Columns that a file spells in another case than its table: whether a session finds them depends on its settings.

With ``spark.sql.caseSensitive`` Spark reads such a column as NULL, and without as what the file holds, so statistics of
one kind of session prove nothing to the other. Files of ours spell columns as their tables do.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.columns import ResolvedColumn, case_sensitive
from dbt_zorder.settings import CASE_SENSITIVE, session_aside, settings
from dbt_zorder.sql import quote_name, quote_string
from dbt_zorder.stats.collect import row_stats

_LOG = logging.getLogger("dbt_zorder")


def without_misspelled(stats: DataFrame, table: str, columns: Sequence[ResolvedColumn]) -> DataFrame:
    """Return statistics without those of files in which a session of the other kind does not find the same column.

    NULLs are counted once more, as such a session reads them. Where it reads as many, it reads the same column, or both
    read nothing but NULL.

    Args:
        stats: of the files of a table, in the shape of ``stats_schema``.
        table: as SQL would name it.
        columns: that they are of.
    """
    spark = stats.sparkSession
    try:
        counted = _nulls_by_the_other(spark, table, columns)
    except Exception as exc:
        _LOG.warning(
            "The stats of %s tell nothing of its columns: with %s=%s, which would have to read the same, it cannot be "
            "read: %s", table, CASE_SENSITIVE, not case_sensitive(spark), str(exc).partition("\n")[0],
        )  # fmt: skip
        counted = pa.table({"file_path": pa.array([], pa.string())})
    stats = stats.join(f.broadcast(spark.createDataFrame(counted)), "file_path", "left") if counted.num_rows else stats
    fields = []
    for number, column in enumerate(columns):
        here = f"columns.{quote_name(column.name)}"
        alike = f"nulls{number} <=> {here}.null_count" if counted.num_rows else "false"
        parts = (f"'{part}', if({alike}, {here}.{part}, NULL)" for part in ("min_value", "max_value", "null_count"))
        fields.append(f"{quote_string(column.name)}, named_struct({', '.join(parts)})")
    kept = [name for name in stats.columns if not name.startswith("nulls")]
    return stats.withColumn("columns", f.expr(f"named_struct({', '.join(fields)})")).select(*kept)


def _nulls_by_the_other(spark: SparkSession, table: str, columns: Sequence[ResolvedColumn]) -> pa.Table:
    """Return path and counts of NULL of each file, by a session that tells names apart in the other way."""
    other = {CASE_SENSITIVE: str(not case_sensitive(spark)).lower()}
    aside = session_aside(spark, other)
    if aside is not None:
        return _counted(aside, table, columns)
    with settings(spark, other):  # over Spark Connect, where each client has a session of its own
        return _counted(spark, table, columns)


def _counted(spark: SparkSession, table: str, columns: Sequence[ResolvedColumn]) -> pa.Table:
    stats = row_stats(spark.table(table), columns, "")
    nulls = [
        f.expr(f"columns.{quote_name(column.name)}.null_count").alias(f"nulls{number}")
        for number, column in enumerate(columns)
    ]
    return collect_arrow(stats.select("file_path", *nulls))
