from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.spark.relation import SparkRelation

from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.requests import build_request, retention_settings
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName


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
    settings = retention_settings(
        model(kind, zorder_keep_versions=10, zorder_grace_hours=720, location_root="/r", **more)
    )
    assert (settings.keep_versions, settings.grace_hours, settings.location_root) == (10, 720, "/r")
    settings = retention_settings(model(kind, **more))
    assert (settings.keep_versions, settings.grace_hours, settings.location_root) == (2, 24, None)


def test_every_setting_of_a_model_reaches_the_build() -> None:
    config = {
        "zorder_by": ["id", "at"],
        "zorder_file_size": "64MB",
        "zorder_encoding": "bits",
        "zorder_bloom": ["id"],
        "zorder_stats_columns": ["total"],
        "zorder_keep_versions": 5,
        "zorder_grace_hours": 1,
        "zorder_in_memory": "300MB",
        "partition_by": "day",
        "file_format": "parquet",
        "options": {"compression": "zstd", "parquet.page.row.count.limit": 700},
    }
    asked = request({**config, "zorder_curve": "hilbert"})
    assert asked.spec == LayoutSpec(
        by=("id", "at"),
        file_size="64MB",
        partition_by=("day",),
        curve="hilbert",
        encoding="bits",
        page_rows=700,
        compression="zstd",
    )
    assert (list(asked.bloom), list(asked.stats_columns), asked.in_memory) == (["id"], ["total"], 300 << 20)
    assert (asked.keep_versions, asked.grace_hours, asked.table) == (5, 1, TableName("sales", "m"))
    asked = request({"zorder_by": ["id", "at"], "zorder_files": 16, "zorder_weights": {"at": 3}})
    assert (asked.spec.files, list(asked.spec.weights or ())) == (16, [1.0, 3.0])


def test_weights_go_by_the_session_s_rule_for_names() -> None:
    config = {"zorder_by": ["id", "at"], "zorder_weights": {"ID": 2}}
    assert list(request(config).spec.weights or ()) == [2.0, 1.0]
    with pytest.raises(ConfigError, match=r"zorder_weights is .*, but 'ID' is not in zorder_by\. Did you mean 'id'"):
        request(config, sensitive=True)


def request(config: dict[str, Any], *, sensitive: bool = False) -> BuildRequest:
    settings = ModelSettings.from_config("m", config)
    assert settings is not None
    relation = SparkRelation.create(schema="sales", identifier="m")
    node = {**model("model", **config), "columns": {}}
    return build_request(settings, relation, node, sensitive=sensitive)
