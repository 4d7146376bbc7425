"""Operations, the post-hook and the data tests, as a user's project calls them."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"

SCHEMA = """
models:
  - name: clustered
    data_tests:
      - zorder_sound:
          arguments:
            predicates: ["a = 3 or id < 10", "a is null"]
    columns:
      - name: a
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.6}}
  - name: hooked
    data_tests: [zorder_sound]
"""

TOO_STRICT = """
models:
  - name: clustered
    columns:
      - name: a
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.01}}
"""


class TestOperations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hook = "{{ zorder_stats(this, ['id']) }}"
        return {
            "clustered.sql": "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} " + QUERY,
            "hooked.sql": '{{ config(materialized="table", file_format="parquet", post_hook="'
            + hook
            + '") }} '
            + QUERY,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    def test_the_data_tests_pass(self, project: Any) -> None:
        results = run_dbt(["test"])
        assert len(results) == 3
        assert all(result.status == "pass" for result in results)

    def test_the_post_hook_registers_stats(self, project: Any, spark: SparkSession) -> None:
        stats = spark.table(f"{project.test_schema}.hooked__zorder_stats")
        assert stats.selectExpr("sum(row_count)").collect()[0][0] == 2000
        assert stats.schema["columns"].dataType.names == ["id"]  # type: ignore[attr-defined]

    def test_explain_prints_what_is_read_and_why(self, project: Any) -> None:
        arguments = '{model: clustered, where: "a = 3 and id = 5"}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments])
        assert "files" in output
        assert "`a` = 3" in output
        assert "fresh" in output

    def test_explain_takes_any_table_by_its_name(self, project: Any) -> None:
        arguments = f'{{model: {project.test_schema}.hooked, where: "id = 5"}}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments])
        assert "`id` = 5" in output

    def test_a_wrong_predicate_is_one_clear_error(self, project: Any) -> None:
        arguments = '{model: clustered, where: "aa = 3"}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments], expect_pass=False)
        assert "There is no column 'aa'" in output
        assert "Traceback" not in output

    def test_stats_can_be_rebuilt(self, project: Any) -> None:
        arguments = ["run-operation", "zorder_rebuild_stats", "--args", "{model: clustered}"]
        _, output = run_dbt_and_capture(arguments)
        assert "4 files" in output


class TestClusteredFails:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} "
        return {"clustered.sql": config + QUERY, "schema.yml": TOO_STRICT}

    def test_a_column_that_is_not_clustered_enough_fails(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["test"], expect_pass=False)
        assert result.status == "fail"
