"""Batches of microbatch models: hours, days, months or years of UTC, which dbt runs one by one.

dbt runs the pre-hooks before the first batch only.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from dbt_common.invocation import get_invocation_id
from pyspark.sql import SparkSession

from dbt_zorder.spark.conf import SESSION_ZONE

_LOG = logging.getLogger("dbt_zorder")
_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "UCT", "Z", "+00:00")

_warned: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class MicroBatch:
    """One batch of a microbatch model.

    Attributes:
        model: name of the model, unique to this dbt invocation.
        is_first: whether pre-hooks run before the batch, which is true for the first batch only.
    """

    model: str
    is_first: bool


def batch_of(config: Any) -> MicroBatch | None:
    """Return the batch that a model's config belongs to, or None if the model has no batches."""
    model: Any = getattr(config, "model", None)
    if getattr(model, "batch", None) is None:
        return None
    return MicroBatch(f"{get_invocation_id()} {model.unique_id}", bool(model.config.pre_hook))


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
