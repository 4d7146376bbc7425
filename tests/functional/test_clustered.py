"""The data test that a column is clustered, where it is not, and on names in any case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"

TOO_STRICT = """
models:
  - name: clustered
    columns:
      - name: a
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.01}}
"""


class TestClusteredFails:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} "
        return {"clustered.sql": config + QUERY, "schema.yml": TOO_STRICT}

    def test_a_column_that_is_not_clustered_enough_fails(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["test"], expect_pass=False)
        assert result.status == "fail"

    @pytest.mark.parametrize(
        ("column", "status", "message"),
        [("A", "pass", ""), ("idd", "error", "only of a, id. Did you mean 'id'?")],
    )
    def test_a_column_is_found_in_any_case(self, project: Any, column: str, status: str, message: str) -> None:
        text = TOO_STRICT.replace("0.01", "0.9").replace("name: a", f"name: {column}")
        (Path(project.project_root) / "models" / "schema.yml").write_text(text)
        run_dbt(["run"])
        (result,) = run_dbt(["test"], expect_pass=status == "pass")
        assert result.status == status
        assert message in " ".join((result.message or "").split())
