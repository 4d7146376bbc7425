"""Snapshots on Parquet: versions that are swapped in whole, clustered or not."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe

SOURCE = "{{ config(materialized='table') }} select * from values {{ var('rows') }} as t(id, name, seen)"

SNAPSHOTS = """
snapshots:
  - name: by_time
    relation: ref('people')
    description: "What {{ 'people' }} were called"
    columns: [{name: id, description: "who it's"}]
    config:
      {strategy: timestamp, unique_key: id, updated_at: seen, hard_deletes: invalidate, zorder_by: [id, name],
       zorder_files: 2, persist_docs: {relation: true, columns: true}}
  - name: by_check
    relation: ref('people')
    config:
      strategy: check
      unique_key: [id]
      check_cols: [name]
      hard_deletes: new_record
      dbt_valid_to_current: "timestamp'2099-12-31'"
      snapshot_meta_column_names: {dbt_valid_to: until, dbt_scd_id: key}
  - name: mistaken
    relation: ref('people')
    config:
      enabled: "{{ var('mistake', false) }}"
      strategy: timestamp
      unique_key: id
      updated_at: seen
      zorder_by: nmae
"""

FIRST = "(1, 'ann', timestamp'2024-01-01'), (2, 'bob', timestamp'2024-01-01'), (3, 'cid', timestamp'2024-01-01')"
SECOND = "(1, 'ann', timestamp'2024-01-01'), (2, 'BOB', timestamp'2024-02-01'), (4, 'dee', timestamp'2024-02-01')"


class TestSnapshots:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"people.sql": SOURCE, "snapshots.yml": SNAPSHOTS}

    def build(self, rows: str, *args: str) -> Any:
        return run_dbt(["build", "--vars", f'{{rows: "{rows}"}}', *args])

    def location(self, spark: SparkSession, project: Any, name: str) -> str:
        info = describe(spark, TableName(project.test_schema, name))
        assert info is not None
        return info.location

    def test_history_is_kept(self, project: Any, spark: SparkSession) -> None:
        schema = project.test_schema
        assert len(self.build(FIRST)) == 3
        places = {name: self.location(spark, project, name) for name in ("by_time", "by_check")}
        results = {result.node.name: result for result in self.build(SECOND)}
        assert all(self.location(spark, project, name) != place for name, place in places.items())

        assert results["by_time"].adapter_response["rows_affected"] == 4
        assert results["by_time"].adapter_response["zorder_by"] == ["id", "name"]
        found = spark.sql(f"select id, name, dbt_valid_to is null as now from {schema}.by_time").collect()
        assert {tuple(row) for row in found} == {
            (1, "ann", True), (2, "bob", False), (2, "BOB", True), (3, "cid", False), (4, "dee", True)
        }  # fmt: skip

        found = spark.sql(f"select id, name, dbt_is_deleted, until > '2099' as now from {schema}.by_check").collect()
        assert {tuple(row) for row in found} == {
            (1, "ann", "False", True), (2, "bob", "False", False), (2, "BOB", "False", True),
            (3, "cid", "False", False), (3, "cid", "True", True), (4, "dee", "False", True),
        }  # fmt: skip
        assert results["by_check"].adapter_response["zorder_by"] == ["id"], "its key, for want of a zorder_by"

    def test_nothing_is_written_when_nothing_changed(self, project: Any, spark: SparkSession) -> None:
        places = {name: self.location(spark, project, name) for name in ("by_time", "by_check")}
        results = {result.node.name: result for result in self.build(SECOND)}
        assert {name: self.location(spark, project, name) for name in places} == places
        assert str(results["by_time"].message) == "zorder: no changes, nothing written"

    def test_descriptions_are_comments(self, project: Any, spark: SparkSession) -> None:
        info = describe(spark, TableName(project.test_schema, "by_time"))
        assert info is not None
        assert info.comment == "What people were called"
        assert info.columns[0] == ("id", "int", "who it's")

    def test_a_mistake_is_told_before_anything_is_written(self, project: Any, spark: SparkSession) -> None:
        results = run_dbt(
            ["snapshot", "--select", "mistaken", "--vars", f'{{rows: "{SECOND}", mistake: true}}'], expect_pass=False
        )
        assert "zorder_by" in results[0].message or "nmae" in results[0].message
        assert "Did you mean 'name'?" in results[0].message
        assert describe(spark, TableName(project.test_schema, "mistaken")) is None
