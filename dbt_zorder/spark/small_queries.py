"""Small queries: what is to be counted and sampled of them is fetched whole, by one job in place of two.

A job takes some 50 to 100 ms, however little it reads, and the keys of 300,000 rows come in the time of their sample.
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
"""By Spark's own estimate of a query: above it, a count and a sample take no longer."""

_SLACK = 6
"""So many times as large may files become by another order of their rows, or in another format."""

_ROW_BY_ROW = {"Project", "Filter"}
"""What gives a row at most for each that it gets."""

_ROW_IN_PARTITION = (1 << 33) - 1
"""These bits of ``monotonically_increasing_id`` number the rows of a Spark partition."""

_NUMBER = "_zorder_number"


def estimated_bytes(df: DataFrame) -> int | None:
    """Return how large Spark takes a query's result to be.

    A scan, filtered or not, is taken for the bytes of its files, and some of its columns for their share by width.
    None where it cannot be asked: over Spark Connect, or of another version of Spark.
    """
    if jvm_of(df.sparkSession) is None:
        return None
    try:
        stats: Any = df._jdf.queryExecution().optimizedPlan().stats()
        return int(str(stats.sizeInBytes()))
    except AnalysisException:  # the query is wrong, which is for the user
        raise
    except Exception as exc:  # another version of Spark
        _LOG.debug("Spark does not tell how large a query is: %s", in_one_line(exc))
        return None


def greatest_bytes(df: DataFrame) -> int | None:
    """Return bytes that the result of a query hardly reaches in Parquet; None where its files do not tell.

    They do where every column comes as it is in them. What the catalog says of their size may be of long ago.
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
    except Exception as exc:  # no scan of files, or none of Spark's own
        _LOG.debug("what is read does not tell how large it is: %s", in_one_line(exc))
    return None


def fetch_few(df: DataFrame, narrow: DataFrame, most_rows: int) -> pa.Table | None:
    """Return what is needed of each row of a query that is taken to be small; None if they are too many after all.

    Files may hold many more rows than their bytes tell, so no Spark partition sends more than its share of the most.

    Args:
        df: the query.
        narrow: what is needed of its rows, made of them by projections alone.
        most_rows: that may come to the driver.
    """
    share = most_rows // max(1, partitions_of(df))
    if not share:
        return None
    numbered = first_numbered(narrow, share, _NUMBER)
    table = collect_arrow(numbered.withColumn(_NUMBER, f.col(_NUMBER) == share - 1))
    return None if pc.any(table[_NUMBER]).as_py() else table.drop_columns([_NUMBER])


def first_numbered(df: DataFrame, share: int, name: str) -> DataFrame:
    """Return the first rows of each Spark partition, ``share`` of them at most, with their numbers as a column more."""
    row = f.monotonically_increasing_id().bitwiseAND(_ROW_IN_PARTITION)
    return df.select("*", row.alias(name)).where(f.col(name) < share)  # a limit would shuffle the rows


def partitions_of(df: DataFrame) -> int:
    """Return in how many Spark partitions the rows of a query come; of a staged one, that keeps them."""
    return int(df._jdf.queryExecution().toRdd().getNumPartitions())
