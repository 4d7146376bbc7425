from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_zorder.errors import ConfigError
from dbt_zorder.tables.health import ColumnHealth, TableHealth
from dbt_zorder.tables.health_limits import check_limits, exceeded

COLUMN = ColumnHealth(depth=6.0, deepest=8, overlaps=5.0, unbounded=0, after=2.0, at_build=2.0)
HEALTH = TableHealth(
    table="shop.orders",
    files=20,
    bytes=20_000,
    rows=100,
    target_bytes=1_000,
    small_files=5,
    without_stats=1,
    new_files=10,
    new_bytes=9_000,
    files_after=20,
    columns={"a": COLUMN, "b": replace(COLUMN, depth=2.0)},
    command="",
)


@pytest.mark.parametrize(
    ("limit", "found", "above"),
    [
        ("max_depth", 6.0, 5),
        ("max_small_files", 0.25, 0.2),
        ("max_new_files", 0.5, 0.4),
        ("max_without_stats", 0.05, 0),
    ],
)
def test_a_figure_above_its_limit_is_returned(limit: str, found: float, above: float) -> None:
    assert exceeded(HEALTH, check_limits({limit: above})) == [{"what": limit, "found": found, "allowed": above}]
    assert exceeded(HEALTH, check_limits({limit: found})) == []


def test_without_limits_a_rewrite_must_not_gain() -> None:
    assert [row["what"] for row in exceeded(HEALTH, check_limits({"max_depth": None}))] == ["a rewrite would gain"]
    good = replace(HEALTH, columns={"a": replace(COLUMN, depth=2.0)}, small_files=0)
    assert exceeded(good, {}) == []


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_dept": 3}, "zorder_healthy has no argument 'max_dept'.* Did you mean 'max_depth'"),
        ({"max_depth": 0.5}, "zorder_healthy: max_depth is 0.5, but it must be a number, 1 or more"),
        ({"max_depth": "6"}, "max_depth is '6', but"),
        ({"max_small_files": 20}, "max_small_files is 20, but it must be a share, 0 to 1"),
        ({"max_new_files": True}, "max_new_files is True, but it must be a share"),
        ({"max_without_stats": -0.1}, "it must be a share"),
        ({"max_depth": float("nan")}, "it must be a number"),
    ],
)
def test_a_limit_that_is_not_allowed_is_named(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_limits(limits)


def test_a_depth_needs_columns() -> None:
    with pytest.raises(ConfigError, match="max_depth needs columns"):
        exceeded(replace(HEALTH, columns={}), {"max_depth": 3.0})
    assert exceeded(replace(HEALTH, columns={}), {"max_small_files": 0.5}) == []
