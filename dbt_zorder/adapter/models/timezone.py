"""Warning for microbatches in a session whose time zone is not UTC. dbt's batches are days or hours of UTC."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from dbt_zorder.spark.conf import SESSION_ZONE

_LOG = logging.getLogger("dbt_zorder")
_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "UCT", "Z", "+00:00")

_warned: set[tuple[str, str]] = set()


def warn_unless_utc(spark: SparkSession, model: str) -> None:
    """Warn, once per model, that its batches may contain rows of two partitions if the session's zone is not UTC."""
    zone = str(spark.conf.get(SESSION_ZONE))
    if zone in _UTC_NAMES or (model, zone) in _warned:
        return
    _warned.add((model, zone))
    _LOG.warning(
        "%s: batches of dbt are days or hours of UTC, and this session's time zone is %s. Where partition_by is of "
        "that zone, as cast(ts as date) is, a batch has rows of two partitions and replaces a part of the one "
        "before it: rows are lost. Set %s to UTC in server_side_parameters, or part the table by UTC.",
        model, zone, SESSION_ZONE,
    )  # fmt: skip
