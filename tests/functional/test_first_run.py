"""The value of ``is_incremental()`` in a first run after its table is built, as in hooks."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

HOW = "{{ 'batch' if is_incremental() else 'whole' }}"
NOTE = "insert into {{ this.schema }}.notes select '{{ this.identifier }}', '" + HOW + "'"
NOTES = "create table if not exists {{ target.schema }}.notes (model string, how string) using parquet"


class TestFirstRun:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "on-run-start": NOTES,
            "models": {"+post-hook": NOTE, "+materialized": "incremental"},
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "clustered.sql": "{{ config(zorder_by='id') }} select id from range(9)",
            "plain.sql": "{{ config(file_format='parquet') }} select id from range(9)",
        }

    def test_it_is_incremental_from_the_second_run_on(self, project: Any, spark: SparkSession) -> None:
        for how in ("whole", "batch"):
            run_dbt(["run", "--threads", "1"])  # Spark has two inserts into one table of files fail now and then
            notes = spark.table(f"{project.test_schema}.notes")
            assert {row.model for row in notes.where(f"how = '{how}'").collect()} == {"clustered", "plain"}
            assert notes.count() == (2 if how == "whole" else 4)
