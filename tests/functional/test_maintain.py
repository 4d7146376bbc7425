"""The maintenance of all tables of a project by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from tests.functional.test_operations import operate

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"
CONFIG = "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} "


class TestMaintain:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "first.sql": CONFIG + QUERY,
            "second.sql": CONFIG + QUERY,
            "plain.sql": QUERY,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        spark.sql(f"INSERT INTO {project.test_schema}.first SELECT /*+ repartition(12) */ * FROM ({QUERY})")

    def test_what_gains_is_rewritten_and_the_rest_is_checked(self, project: Any, spark: SparkSession) -> None:
        output = operate("zorder_maintain", "{}")
        assert "first: 16 files of" in output
        assert "would be rewritten" in output
        assert "2 tables: 1 would be rewritten (16 files," in output
        assert "Nothing was changed" in output
        assert "1 left" in operate("zorder_maintain", "{budget_bytes: 1000}")
        output = operate("zorder_maintain", "{dry_run: false, budget_bytes: 1GB, budget_minutes: 60, strict: true}")
        assert "rewritten into 4, verified, 0 findings" in output
        assert "second: verified, 0 findings" in output
        assert "2 tables: 1 rewritten (16 files," in output
        assert "0 left, 0 failures. Seconds: health" in output
        assert "2 tables: 0 rewritten" in operate("zorder_maintain", "{dry_run: false}")
        assert spark.table(f"{project.test_schema}.first").count() == 4000

    def test_a_damaged_table_does_not_stop_the_others(self, project: Any, spark: SparkSession) -> None:
        info = describe(spark, TableName(project.test_schema, "second"))
        assert info is not None
        next(Path(unquote(urlsplit(info.location).path)).glob("*.parquet")).unlink()
        output = operate("zorder_maintain", "{dry_run: false}")
        assert "second: verified" in output
        assert "is lost" in output
        assert "first: verified, 0 findings" in output
        output = operate("zorder_maintain", "{models: [second], dry_run: false, strict: true}", expect_pass=False)
        assert "first" not in output.split("zorder_maintain:")[-1]

    def test_a_table_that_is_not_built_has_nothing_to_do(self, project: Any) -> None:
        assert "not a table here, nothing to do" in operate("zorder_maintain", "{models: plain}")
        assert "There is no model" in operate("zorder_maintain", "{models: [frist]}", expect_pass=False)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("{dry_run: 'no'}", "zorder_maintain: dry_run is 'no', but it must be true or false"),
            ("{strict: 1}", "zorder_maintain: strict is 1, but it must be true or false"),
            ("{budget_bytes: lots}", "zorder_maintain: budget_bytes is 'lots', but it must be a number of bytes"),
        ],
    )
    def test_arguments_that_are_not_allowed_are_named(self, project: Any, arguments: str, message: str) -> None:
        assert message in operate("zorder_maintain", arguments, expect_pass=False)
