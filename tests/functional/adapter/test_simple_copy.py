"""A small project, run twice."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.util import run_dbt


class TestSimpleCopy(SimpleCopyBase):
    @pytest.mark.skip(reason="Spark has no materialized views")
    def test_simple_copy_with_materialized_views(self, project: Any) -> None:
        super().test_simple_copy_with_materialized_views(project)


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    def test_dbt_doesnt_run_empty_models(self, project: Any) -> None:
        """The suite asks Postgres's information schema what there is."""
        run_dbt(["seed"])
        assert len(run_dbt()) == 7
        names = {row[1] for row in project.run_sql(f"show tables in {project.test_schema}", fetch="all")}
        assert {"incremental", "materialized"} <= names
        assert not names & {"empty", "disabled"}


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: Any, session_dir: str) -> dict[str, Any]:
        return {"type": "spark_zorder", "schema": "set by dbt's own fixtures", "threads": 2, "session_dir": session_dir}
