from __future__ import annotations

from typing import Any

import pytest

from dbt_zorder.adapter.requests import kept_settings


def model(kind: str, **config: Any) -> dict[str, Any]:
    return {"name": "m", "resource_type": kind, "unique_id": f"{kind}.p.m", "config": config}


@pytest.mark.parametrize("kind", ["model", "snapshot", "seed"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"zorder_by": ["id"]},
        {"zorder_by": ["id"], "zorder_skip": True},
        {"file_format": "csv", "zorder_weights": 3},
    ],
)
def test_versions_are_kept_as_the_model_says_whatever_builds_it_now(kind: str, more: dict[str, Any]) -> None:
    settings = kept_settings(model(kind, zorder_keep_versions=10, zorder_grace_hours=720, location_root="/r", **more))
    assert (settings.keep_versions, settings.grace_hours, settings.location_root) == (10, 720, "/r")
    settings = kept_settings(model(kind, **more))
    assert (settings.keep_versions, settings.grace_hours, settings.location_root) == (2, 24, None)
