"""A project of one incremental model, which each test sets anew, and what must be in its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.spark.catalog import TableName, describe
from tests.support import same_rows

ROWS = "select id, pmod(hash(id), 100) as a, concat('k', id % 7) as s, cast(id % 3 as int) as p from range({}, {})"
VARS = "{{ var('first', 0) }}, {{ var('end', 300) }}"
QUERY = ROWS.replace("{}, {}", VARS)


def config(text: str) -> str:
    return "{{ config(materialized='incremental', zorder_by=['a', 's'], zorder_files=4, " + text + ") }} "


class Incremental:
    """One model ``m`` that each test sets anew."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": config("") + QUERY}

    def set_model(self, project: Any, text: str) -> None:
        (Path(project.project_root) / "models" / "m.sql").write_text(text)

    def start(self, project: Any, text: str, query: str = QUERY) -> None:
        self.set_model(project, config(text) + query)
        run_dbt(["run", "--full-refresh"])

    def run(self, first: int, end: int, *, ok: bool = True) -> Any:
        return run_dbt(["run", "--vars", f"{{first: {first}, end: {end}}}"], expect_pass=ok).results[0]

    def check(self, project: Any, spark: SparkSession, query: str) -> None:
        table = spark.table(f"{project.test_schema}.m")
        names = sorted(table.columns)
        assert same_rows(table.select(*names), spark.sql(query).select(*names))
        assert pruning.sound(spark, f"{project.test_schema}.m", ["a = 7 or s is null"]) == []

    def location(self, project: Any, spark: SparkSession) -> str:
        info = describe(spark, TableName(project.test_schema, "m"))
        assert info is not None
        return info.location
