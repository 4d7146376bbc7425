"""Models, seeds and snapshots whose names belong to helpers of another table, and one that lies where versions go."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

PLAIN = "{{{{ config(materialized='{kind}', alias='orders{suffix}') }}}} select id from range(1000)"
INCREMENTAL = "{{ config(materialized='incremental', zorder_by='id') }} select id from range(1000)"


class TestReservedNames:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "plain.sql": PLAIN.format(kind="table", suffix="__zorder"),
            "seen.sql": PLAIN.format(kind="view", suffix="__zorder_next"),
            "grown.sql": PLAIN.format(kind="incremental", suffix="__ZORDER_prev"),
            "orders.sql": INCREMENTAL,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"orders__zorder_stats.csv": "id\n1\n"}

    def test_such_a_model_is_an_error_and_the_table_keeps_its_rows(self, project: Any, spark: SparkSession) -> None:
        for _ in range(2):
            for name, suffix in (("plain", "__zorder"), ("seen", "__zorder_next"), ("grown", "__zorder_prev")):
                (result,) = run_dbt(["run", "--select", name], expect_pass=False)
                assert f"ends in '{suffix}', a name that is reserved" in str(result.message)
            run_dbt(["run", "--select", "orders"])
        (result,) = run_dbt(["seed"], expect_pass=False)
        assert "'__zorder_stats'" in str(result.message)
        assert spark.table(f"{project.test_schema}.orders").count() == 2000

    def test_a_table_that_something_else_made_there_is_an_error(self, project: Any, spark: SparkSession) -> None:
        schema = project.test_schema
        spark.sql(f"DROP TABLE {schema}.orders")
        spark.sql(f"CREATE TABLE {schema}.orders__zorder_prev USING parquet AS SELECT 1 AS mine")
        (result,) = run_dbt(["run", "--select", "orders", "--full-refresh"], expect_pass=False)
        assert "orders__zorder_prev is in the way" in str(result.message)
        assert spark.table(f"{schema}.orders__zorder_prev").columns == ["mine"]
