"""Incremental models with zorder_by whose query changes its columns, in every mode of on_schema_change."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.functional.incremental import QUERY, ROWS, Incremental, config


class TestSchemaChanges(Incremental):
    NEW = QUERY.replace("cast(id % 3 as int) as p", "id * 2 as extra")

    def go(self, project: Any, mode: str, query: str, *, ok: bool = True) -> Any:
        self.start(project, f"on_schema_change='{mode}'")
        self.set_model(project, config(f"on_schema_change='{mode}'") + query)
        return self.run(300, 350, ok=ok)

    def test_ignore_leaves_new_columns_out(self, project: Any, spark: SparkSession) -> None:
        self.go(project, "ignore", QUERY.replace("select", "select 1 as extra,"))
        self.check(project, spark, ROWS.format(0, 350))

    def test_ignore_does_not_do_without_a_column(self, project: Any, spark: SparkSession) -> None:
        found = self.go(project, "ignore", self.NEW, ok=False)
        assert "missing: p int" in found.message
        self.check(project, spark, ROWS.format(0, 300))

    def test_fail_fails(self, project: Any, spark: SparkSession) -> None:
        found = self.go(project, "fail", self.NEW, ok=False)
        assert "Compilation Error" in found.message
        assert "new: extra bigint; missing: p int" in found.message
        self.check(project, spark, ROWS.format(0, 300))

    def test_append_new_columns(self, project: Any, spark: SparkSession) -> None:
        found = self.go(project, "append_new_columns", self.NEW)
        old = f"select *, null as extra from ({ROWS.format(0, 300)})"
        new = f"select *, id * 2 as extra from (select id, a, s, null as p from ({ROWS.format(300, 350)}))"
        self.check(project, spark, f"{old} union all {new}")
        assert found.adapter_response["appended"] is True

    def test_sync_all_columns(self, project: Any, spark: SparkSession) -> None:
        found = self.go(project, "sync_all_columns", self.NEW.replace("select id", "select cast(id as string) as id"))
        old = f"select cast(id as string) as id, a, s, null as extra from ({ROWS.format(0, 300)})"
        new = f"select cast(id as string) as id, a, s, id * 2 as extra from ({ROWS.format(300, 350)})"
        self.check(project, spark, f"{old} union all {new}")
        assert spark.table(f"{project.test_schema}.m").schema["id"].dataType.simpleString() == "string"
        assert found.adapter_response["appended"] is False

    def test_a_value_that_does_not_fit_fails_the_run(self, project: Any, spark: SparkSession) -> None:
        found = self.go(project, "ignore", QUERY.replace("cast(id % 3 as int)", "concat('p', id)"), ok=False)
        assert "A value of column p does not fit into int: p3" in found.message
        self.check(project, spark, ROWS.format(0, 300))
