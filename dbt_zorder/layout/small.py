"""Small queries: what is to be counted and sampled of them is fetched whole, by one job in place of two.

A job takes some 50 to 100 ms, however little it reads, and the keys of 300,000 rows come in the time of their sample.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.jvm import jvm_of

SMALL_BYTES = 32 << 20
"""By Spark's own estimate of a query: above it, a count and a sample take no longer."""

_MOST_BYTES = 64 << 20
"""What one Spark partition may send, as files may hold many more rows than their bytes tell."""

_ROW_IN_PARTITION = (1 << 33) - 1
"""These bits of ``monotonically_increasing_id`` number the rows of a Spark partition."""


def estimated_bytes(df: DataFrame) -> int | None:
    """Return how large Spark takes a query's result to be: for a scan, and a filter on it, the bytes of its files.

    None over Spark Connect, where it cannot be asked.
    """
    if jvm_of(df.sparkSession) is None:
        return None
    stats: Any = df._jdf.queryExecution().optimizedPlan().stats()
    return int(str(stats.sizeInBytes()))


def fetch_few(df: DataFrame, row_bytes: int) -> pa.Table | None:
    """Return all rows of a query that is taken to be small; None if there are too many of them after all.

    Args:
        df: the query: what is needed of each row, and no more.
        row_bytes: that a row of it is taken for.
    """
    most = _MOST_BYTES // row_bytes
    number = "_zorder_number"
    numbered = df.select("*", f.monotonically_increasing_id().alias(number))
    # a limit would send all rows to one task first
    few = numbered.where(f.col(number).bitwiseAND(_ROW_IN_PARTITION) < most).drop(number)
    table = collect_arrow(few)
    return table if table.num_rows < most else None
