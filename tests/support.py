"""What several suites need: settings for a while, names that nobody else has, and a table's content as one number."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession


@contextlib.contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set session settings while the block runs, and put back what was there."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def unique(prefix: str) -> str:
    """Return a name that no other test uses."""
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


def checksum(df: DataFrame) -> tuple[int, int]:
    """Return the number of rows and a sum over all values that does not depend on the order of rows."""
    names = ", ".join("`" + name.replace("`", "``") + "`" for name in df.columns)
    row = df.selectExpr("count(*)", f"coalesce(sum(cast(xxhash64({names}) as decimal(38, 0))), 0)").collect()[0]
    return int(row[0]), int(row[1])


def same_rows(one: DataFrame, other: DataFrame) -> bool:
    """Tell whether two queries give the same rows the same number of times."""
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()
