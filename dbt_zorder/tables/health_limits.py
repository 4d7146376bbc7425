"""Compare the health of a table with limits, as the data test ``zorder_healthy`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt_zorder import option_parsers as values
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.tables.health import TableHealth


def _depth(health: TableHealth) -> float:
    if not health.columns:
        msg = f"zorder_healthy: max_depth needs columns, and {health.table} is clustered by none. Name them as columns."
        raise ConfigError(msg)
    return max(one.depth for one in health.columns.values())


_LIMITS: Mapping[str, tuple[Callable[[TableHealth], float], Callable[[Any], float]]] = {
    "max_depth": (_depth, values.from_one),
    "max_small_files": (lambda health: health.small_files / max(1, health.files), values.share),
    "max_new_files": (lambda health: (health.new_files or 0) / max(1, health.files), values.share),
    "max_without_stats": (lambda health: health.without_stats / max(1, health.files), values.share),
}
"""The figure of each limit, and the parser of its value."""


def check_limits(limits: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that are set.

    Raises:
        ConfigError: there is no limit of a name, or its value is out of range.
    """
    for name in limits:
        if name not in _LIMITS:
            allowed = ("columns", *_LIMITS)
            msg = f"zorder_healthy has no argument '{name}', only {', '.join(allowed)}.{did_you_mean(name, allowed)}"
            raise ConfigError(msg)
    return {
        name: values.read(f"zorder_healthy: {name}", value, _LIMITS[name][1])
        for name, value in limits.items()
        if value is not None
    }


def exceeded(health: TableHealth, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return a row for each figure above its limit; without limits, one if a rewrite would gain.

    Args:
        health: the health of a table.
        limits: result of ``check_limits``.

    Raises:
        ConfigError: the limit is of columns, and none are examined.
    """
    if not limits:
        return [{"what": "a rewrite would gain", "found": 1.0, "allowed": 0.0}] if health.gains else []
    rows = [{"what": name, "found": _LIMITS[name][0](health), "allowed": most} for name, most in limits.items()]
    return [row for row in rows if row["found"] > row["allowed"]]  # type: ignore[operator]
