"""The module that dbt imports for ``type: spark_zorder``; shipped as ``dbt.adapters.spark_zorder``."""

from __future__ import annotations

from dbt_zorder.adapter.plugin import Plugin

__all__ = ["Plugin"]
