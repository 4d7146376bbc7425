from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture
from pyspark.sql import SparkSession

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"


class TestHooks:
    """Operations as hooks, of a model and of a run."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hook = "{% do zorder_optimize('first', dry_run=false) %}"
        config = "{{ config(materialized='table', zorder_by='a', zorder_files=2 MORE) }} " + QUERY
        hooked = config.replace("MORE", f', post_hook="{hook}"') + " -- depends_on: {{ ref('first') }}"
        return {"first.sql": config.replace("MORE", ""), "second.sql": hooked}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hooks = [
            "{% do zorder_vacuum(dry_run=false, grace_hours=0, keep_versions=0) %}",
            "{% do zorder_rollback('second') if flags.FULL_REFRESH %}",
            "{% do zorder_verify() %}",
            "{% do zorder_explain('first', 'a = 1') %}",
            "{% do zorder_rebuild_stats('first') %}",
        ]
        return {"on-run-end": hooks}

    def test_operations_run_as_hooks(self, project: Any, spark: SparkSession) -> None:
        _, output = run_dbt_and_capture(["run"])
        output = " ".join(output.split())
        assert "were rewritten into 2" in output
        assert "1 of 2 versions deleted" in output
        assert output.count("listing, stats and footers agree") == 2
        assert "Nothing was deleted" not in output

    @pytest.mark.parametrize("command", [["compile"], ["docs", "generate"]])
    def test_they_do_nothing_where_nothing_is_built(self, project: Any, command: list[str]) -> None:
        _, output = run_dbt_and_capture(command)
        assert [word for word in ("deleted", "rewritten", "served from", "Stats of") if word in output] == []
