"""Settings of a Spark session: on or off, for a while, and what Spark shows of one that may be a secret."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession

ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
"""With it backslashes in literals are themselves, so what ``sql.quote_string`` writes means something else."""

DATETIME_TO_STRING = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
"""With it a date that is compared with a text is compared as a text."""

REDACTED = "(redacted)"
"""Stands in the value of a setting or a property that Spark hides, behind asterisks."""


def is_on(spark: SparkSession, key: str) -> bool:
    """Tell whether a setting is on; one that is not set is off."""
    return str(spark.conf.get(key, "false")).lower() == "true"


def open_files(spark: SparkSession) -> int:
    """Return how many files a task keeps open that writes partitions as they come; at 0 Spark sorts by them first."""
    return int(spark.conf.get("spark.sql.maxConcurrentOutputFileWriters", "0") or 0)


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
