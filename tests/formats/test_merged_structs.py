"""A model by MERGE whose query gives its structs other fields, as dbt runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

MERGED = (
    "{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', zorder_by='st.k', "
    "on_schema_change='append_new_columns') }}}} select id, {} as st from range({{{{ var('first', 0) }}}}, 10)"
)


class TestMergedStructs:
    @pytest.fixture(scope="class")
    def project_config_update(self, file_format: str) -> dict[str, Any]:
        return {"models": {"+file_format": file_format}}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], file_format: str) -> dict[str, Any]:
        return {**dbt_profile_target, "zorder_formats": [file_format]}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": MERGED.format("named_struct('k', id, 'v', 'v')")}

    def test_fields_that_come_later(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        path = Path(project.project_root) / "models" / "m.sql"
        path.write_text(MERGED.format("named_struct('n', 1, 'v', 'w', 'k', id)"))
        run_dbt(["run", "--vars", "{first: 5}"])
        found = spark.table(f"{project.test_schema}.m").selectExpr("id", "st.k", "st.v", "st.n")
        expected = {(n, n, "v" if n < 5 else "w", None if n < 5 else 1) for n in range(10)}
        assert {tuple(row) for row in found.collect()} == expected
