"""Compaction of a table that another writer made, as an operation."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from tests.functional.test_operations import operate
from tests.support import checksum

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"
ROWS = "SELECT /*+ repartition(20) */ id, pmod(hash(id), 100) k FROM range(2000)"


class TestOptimizeAny:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"ours.sql": "{{ config(materialized='table', zorder_by='a') }} " + QUERY}

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        spark.sql(f"CREATE TABLE {project.test_schema}.raw USING parquet AS {ROWS}")

    def test_a_table_of_another_writer_is_compacted_once(self, project: Any, spark: SparkSession) -> None:
        name = f"{project.test_schema}.raw"
        rows = checksum(spark.table(name))
        arguments = f"model: {name}, zorder_by: [k, id]"
        output = operate("zorder_optimize", f"{{{arguments}}}")
        assert "20 files of" in output
        assert "would be rewritten into about 1." in output
        output = operate("zorder_optimize", f"{{{arguments}, dry_run: false}}")
        assert "were rewritten into 1." in output
        assert "Its former files stay in" in output
        spark.catalog.refreshTable(name)
        assert checksum(spark.table(name)) == rows
        assert "nothing to do" in operate("zorder_optimize", f"{{{arguments}, dry_run: false}}")
        assert "listing, stats and footers agree" in operate("zorder_verify", f"{{model: {name}}}")
        assert "A rewrite would gain little" in operate("zorder_health", f"{{model: {name}}}")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("{model: ours, zorder_by: [id]}", "the model 'ours' has zorder_by: leave both out"),
            ("{model: ours, file_size: 64MB}", "the model 'ours' has zorder_by"),
            ("{model: SCHEMA.plain, file_size: 64MB}", "file_size is '64MB', but it is only allowed together with"),
            ("{model: SCHEMA.plain, zorder_by: []}", "zorder_optimize: zorder_by is [], but an empty list"),
            (
                "{model: SCHEMA.plain, zorder_by: id, file_size: big}",
                "zorder_optimize: file_size is 'big', but it must",
            ),
            ("{model: SCHEMA.plain}", "Or name the columns to cluster it by: zorder_by."),
        ],
    )
    def test_arguments_that_are_not_allowed_are_named(
        self, project: Any, spark: SparkSession, arguments: str, message: str
    ) -> None:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {project.test_schema}.plain USING parquet AS SELECT 1 id")
        output = operate("zorder_optimize", arguments.replace("SCHEMA", project.test_schema), expect_pass=False)
        assert message in output
