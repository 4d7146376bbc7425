"""Structs that get fields: models with a contract, Python models and snapshots, as dbt runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from tests.support import same_rows

AGREED = """
models:
  - name: agreed
    config: {{contract: {{enforced: true}}}}
    columns: [{{name: id, data_type: bigint}}, {{name: st, data_type: "{}"}}]
"""
CONFIG = "materialized='incremental', zorder_by=['st.k'], zorder_files=2, on_schema_change='append_new_columns'"
HEAD = "{{ config(" + CONFIG + ") }} select id, "
ROWS = " from range({{ var('first', 0) }}, {{ var('end', 40) }})"
OLD, NEW = "named_struct('k', id % 9, 'v', 'v')", "named_struct('n', 1, 'v', 'v', 'k', id % 9)"
PYTHON = """
def model(dbt, session):
    dbt.config(
        materialized="incremental", incremental_strategy="append", zorder_by="st.k", on_schema_change="sync_all_columns"
    )
    return session.sql("{}")
"""
SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('source')
    config: {strategy: check, check_cols: [v], unique_key: id}
"""
SOURCE = "select 1 as id, {{ var('end', 40) }} as v, "


class TestNestedChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {}

    def write(self, project: Any, struct: str, kind: str) -> None:
        models = Path(project.project_root) / "models"
        (models / "agreed.sql").write_text(HEAD + struct + " as st" + ROWS)
        (models / "agreed.yml").write_text(AGREED.format(kind))
        first, end = ("0", "40") if struct == OLD else ("40", "50")
        (models / "made.py").write_text(PYTHON.format(f"select id, {struct} as st from range({first}, {end})"))
        (models / "source.sql").write_text(SOURCE + struct.replace("id", "7") + " as st")
        (models / "history.yml").write_text(SNAPSHOT)

    def test_fields_that_come_later(self, project: Any, spark: SparkSession) -> None:
        self.write(project, OLD, "struct<k:bigint,v:string>")
        run_dbt(["build"])
        self.write(project, NEW, "struct<n:int,v:string,k:bigint>")
        run_dbt(["build", "--vars", "{first: 40, end: 50}"])
        expected = spark.sql(
            "SELECT id, named_struct('k', id % 9, 'v', 'v', 'n', if(id < 40, NULL, 1)) AS st FROM range(50)"
        )
        for name in ("agreed", "made"):
            table = f"{project.test_schema}.{name}"
            assert same_rows(spark.table(table), expected), name
            assert pruning.sound(spark, table, ["st.k = 7", "st.k < 3 OR id = 45"]) == []
        history = spark.table(f"{project.test_schema}.history").selectExpr("v", "st.k", "st.v AS t", "st.n")
        assert {tuple(row) for row in history.collect()} == {(40, 7, "v", None), (50, 7, "v", 1)}
