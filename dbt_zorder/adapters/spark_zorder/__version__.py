"""The version that ``dbt --version`` shows."""

from __future__ import annotations

from dbt_zorder import __version__ as version

__all__ = ["version"]
