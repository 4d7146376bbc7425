"""Collect and store the statistics of each data file: min_value, max_value and null_count of its columns."""

from __future__ import annotations

from dbt_zorder.stats.collect import collect
from dbt_zorder.stats.schema import STATS_DIRECTORY, STATS_SUFFIX, stats_schema

__all__ = ["STATS_DIRECTORY", "STATS_SUFFIX", "collect", "stats_schema"]
