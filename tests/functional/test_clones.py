"""Clones of what is no plain SQL model."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseClone
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return session.range(3)
"""
HOOKED = """{{ config(materialized='table', file_format='parquet', post_hook="{{ zorder_stats(this, ['id']) }}") }}
select id from range(3)"""


class TestClones(BaseClone):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.py": PYTHON, "hooked.sql": HOOKED}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {}

    def test_they_are_views(self, project: Any, unique_schema: str, other_schema: str, spark: SparkSession) -> None:
        project.create_test_schema(other_schema)
        run_dbt(["run"])
        self.copy_state(project.project_root)  # type: ignore[no-untyped-call]
        results = run_dbt(["clone", "--state", "state", "--target", "otherschema"])
        assert {str(result.status) for result in results} == {"success"}
        for name in ("m", "hooked"):
            assert spark.table(f"{other_schema}.{name}").count() == 3
