"""Fetch small queries whole, by one job, instead of a job to count and another to sample.

A job needs about 50 to 100 ms, however little it reads. The keys of 300,000 rows arrive as fast as their sample.
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.jvm import jvm_of
from dbt_zorder.spark.messages import in_one_line

_LOG = logging.getLogger("dbt_zorder")

SMALL_BYTES = 32 << 20
"""Maximum size by Spark's own estimate of a query. Above it, a count and a sample are as fast."""

_SLACK = 6
"""Maximum factor by which files may grow in another order of their rows, or in another format."""

_ROW_BY_ROW = {"Project", "Filter"}
"""Operators that return at most one row for each input row."""

_ROW_IN_PARTITION = (1 << 33) - 1
"""Bits of ``monotonically_increasing_id`` that number the rows of a Spark partition."""

_NUMBER = "_zorder_number"


def estimated_bytes(df: DataFrame) -> int | None:
    """Return Spark's estimate of the size of a query's result, in bytes.

    The estimate of a scan, filtered or not, is the size of its files. For a part of the columns, it is their share by
    width. None if Spark cannot be asked: over Spark Connect, or in another version of Spark.
    """
    if jvm_of(df.sparkSession) is None:
        return None
    try:
        stats: Any = df._jdf.queryExecution().optimizedPlan().stats()
        return int(str(stats.sizeInBytes()))
    except AnalysisException:  # the query is wrong, and the user must see it
        raise
    except Exception as exc:  # another version of Spark
        _LOG.debug("Spark gives no size of a query: %s", in_one_line(exc))
        return None


def greatest_bytes(df: DataFrame) -> int | None:
    """Return a size in bytes that a query's result hardly exceeds in Parquet; None if its files do not show it.

    They show it if every column is read from them unchanged. A size in the catalog may be outdated.
    """
    if jvm_of(df.sparkSession) is None:
        return None
    try:
        plan: Any = df._jdf.queryExecution().optimizedPlan()
        files = plan
        while files.nodeName() in _ROW_BY_ROW:
            files = files.children().head()
        listed = str(files.relation().location().getClass().getName()).endswith(".InMemoryFileIndex")
        if listed and plan.outputSet().subsetOf(files.outputSet()):
            return _SLACK * int(files.relation().sizeInBytes())
    except Exception as exc:  # not a file scan, or not one of Spark's own
        _LOG.debug("the sources of a query give no size: %s", in_one_line(exc))
    return None


def fetch_few(df: DataFrame, narrow: DataFrame, most_rows: int) -> pa.Table | None:
    """Return the needed columns of a query that is estimated to be small; None if it has too many rows after all.

    Files may contain many more rows than their bytes suggest. So no Spark partition sends more than its share of
    ``most_rows``.

    Args:
        df: query to fetch.
        narrow: the needed columns of its rows, derived from it only by projections.
        most_rows: maximum number of rows that may reach the driver.
    """
    share = most_rows // max(1, partitions_of(df))
    if not share:
        return None
    numbered = first_numbered(narrow, share, _NUMBER)
    table = collect_arrow(numbered.withColumn(_NUMBER, f.col(_NUMBER) == share - 1))
    return None if pc.any(table[_NUMBER]).as_py() else table.drop_columns([_NUMBER])


def first_numbered(df: DataFrame, share: int, name: str) -> DataFrame:
    """Return the first rows of each Spark partition, at most ``share``, with their numbers in an additional column."""
    row = f.monotonically_increasing_id().bitwiseAND(_ROW_IN_PARTITION)
    return df.select("*", row.alias(name)).where(f.col(name) < share)  # a limit would shuffle the rows


def partitions_of(df: DataFrame) -> int:
    """Return the number of Spark partitions of a query's rows; a staged query keeps its partitions."""
    return int(df._jdf.queryExecution().toRdd().getNumPartitions())
