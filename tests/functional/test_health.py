"""The health of tables as an operation and as a data test: of z-ordered models, of other models, of views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from tests.functional.test_operations import operate

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"

SCHEMA = """
models:
  - name: clustered
    data_tests:
      - zorder_healthy
      - zorder_healthy:
          name: limited
          arguments: {max_depth: 3, max_small_files: 0, max_new_files: 0, max_without_stats: 0}
  - name: seen
    data_tests:
      - zorder_healthy: {arguments: {max_small_files: 0}}
  - name: scattered
    data_tests:
      - zorder_healthy:
          name: scattered_is_healthy
          arguments: {columns: [id], max_depth: 2}
"""


class TestHealth:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        clustered = "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} "
        scattered = "{{ config(materialized='table', file_format='parquet') }} select /*+ repartition(5) */ * from ("
        return {
            "clustered.sql": clustered + QUERY,
            "scattered.sql": scattered + QUERY + ")",
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('clustered') }}",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    def test_the_health_of_a_model_is_printed(self, project: Any) -> None:
        output = operate("zorder_health", "{model: clustered}")
        assert "clustered: 4 files of" in output
        assert "a point query on a reads 2.0 of 4 files (50%), 2 at most" in output
        assert "A rewrite would gain little." in output

    def test_the_health_of_any_table_is_printed(self, project: Any) -> None:
        output = operate("zorder_health", f"{{model: {project.test_schema}.scattered, columns: [id]}}")
        assert "5 files of" in output
        assert "of 5 files (" in output
        assert "a file overlaps 4.0 others" in output
        assert 'zorder_by: ["id"], dry_run: false' in output
        assert "No column is examined" in operate("zorder_health", "{model: scattered}")

    def test_errors_are_one_sentence(self, project: Any) -> None:
        assert "Did you mean 'id'" in operate("zorder_health", "{model: scattered, columns: idd}", expect_pass=False)
        assert "is a view, which has no files" in operate("zorder_health", "{model: seen}", expect_pass=False)

    def test_the_data_test_fails_for_a_table_that_is_not_healthy(self, project: Any) -> None:
        results = {result.node.name: result for result in run_dbt(["test"], expect_pass=False)}
        assert {name for name, result in results.items() if result.status != "pass"} == {"scattered_is_healthy"}
        assert results["scattered_is_healthy"].failures == 1

    def test_a_wrong_limit_is_an_error(self, project: Any) -> None:
        path = Path(project.project_root) / "models" / "schema.yml"
        path.write_text(SCHEMA.replace("max_depth: 2", "max_dept: 2"))
        try:
            (result,) = run_dbt(["test", "--select", "scattered"], expect_pass=False)
            assert result.status == "error"
            assert "Did you mean 'max_depth'?" in " ".join((result.message or "").split())
        finally:
            path.write_text(SCHEMA)

    def test_batches_of_another_writer_make_a_model_unhealthy(self, project: Any, spark: SparkSession) -> None:
        name = f"{project.test_schema}.clustered"
        spark.sql(f"INSERT INTO {name} SELECT /*+ repartition(12) */ id, pmod(hash(id), 100) FROM range(2000)")
        output = operate("zorder_health", "{model: clustered}")
        assert "clustered: 16 files of" in output
        assert "12 files of" in output
        assert "came by batches since the last whole layout, when a point query read a 2.0, id" in output
        assert "{model: " + name + ", dry_run: false}" in output
        results = run_dbt(["test", "--select", "clustered"], expect_pass=False)
        assert {result.status for result in results} == {"fail"}
