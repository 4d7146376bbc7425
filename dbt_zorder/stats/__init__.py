"""What each data file holds: least and greatest value and null count of columns, kept beside the data."""

from __future__ import annotations

from dbt_zorder.stats.collect import collect
from dbt_zorder.stats.schema import STATS_DIRECTORY, STATS_SUFFIX, stats_schema

__all__ = ["STATS_DIRECTORY", "STATS_SUFFIX", "collect", "stats_schema"]
