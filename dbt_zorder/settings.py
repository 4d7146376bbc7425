"""Settings of a Spark session that are on or off."""

from __future__ import annotations

from pyspark.sql import SparkSession

ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
"""With it backslashes in literals are themselves, so what ``sql.quote_string`` writes means something else."""


def is_on(spark: SparkSession, key: str) -> bool:
    """Tell whether a setting is on; one that is not set is off."""
    return str(spark.conf.get(key, "false")).lower() == "true"
