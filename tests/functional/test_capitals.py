"""Models whose names have capital letters, which Spark's catalog writes small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

UPPER = "{{ config(materialized='table', zorder_by='id') }} select id from range(10)"
FOUND = "{% if execute %}{% set found = load_relation(ref('Upper')) %}{% endif %} select * from {{ ref('Upper') }}"
VIEW = UPPER.replace("'table'", "'view'")


class TestCapitals:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"Upper.sql": UPPER, "down.sql": FOUND}

    @pytest.mark.parametrize("before", [None, VIEW, UPPER])
    def test_a_model_is_found_again_in_the_run_that_built_it(
        self, project: Any, spark: SparkSession, before: str | None
    ) -> None:
        if before is not None:
            (Path(project.project_root) / "models" / "Upper.sql").write_text(before)
            run_dbt(["run"])
            (Path(project.project_root) / "models" / "Upper.sql").write_text(UPPER)
        run_dbt(["run"])
        assert spark.table(f"{project.test_schema}.down").count() == 10
