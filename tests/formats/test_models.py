"""Models, seeds and operations of a dbt project whose tables are in Delta Lake or Iceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe, properties
from tests.support import same_rows

QUERY = "select id, pmod(hash(id), 1000) as a, concat('k', id % 77) as s from range({{ var('end', 4000) }})"
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table", zorder_by=["a"], zorder_files=4)
    return dbt.ref("plain").filter("a < 500")
"""
PROPERTIES = """
models:
  - name: plain
    description: all of them
    columns: [{name: a, description: a number}]
    config: {persist_docs: {relation: true, columns: true}}
    data_tests: [zorder_sound]
  - name: guarded
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: bigint}, {name: a, data_type: int}]
    constraints: [{type: check, name: positive, expression: id >= 0}]
  - name: batches
    columns: [{name: a, data_tests: [{zorder_clustered: {arguments: {at_most: 0.8}}}]}]
"""
BATCHES = (
    "{{ config(materialized='incremental', incremental_strategy='append', zorder_by=['a', 's'], zorder_files=4) }} "
    f"select * from ({QUERY}) "
    "{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}"
)
GUARDED = (
    "{{ config(materialized='incremental', on_schema_change='append_new_columns', zorder_by='a') }} "
    f"select id, a from ({QUERY})"
)
MERGED = (
    "{{ config(materialized='incremental', incremental_strategy='merge', unique_key=var('key', 'id'), "
    "zorder_by='a') }} "
    f"select id, a + {{{{ var('more', 0) }}}} as a, s from ({QUERY})"
)
MERGED_FROM_A_TABLE = (
    "{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id'{more}) }}}} "
    "select id, a + {{{{ var('more', 0) }}}} as a, s from {{{{ ref('plain') }}}}"
)
KEYED = "select id % 3 as k, id, {{ var('state', 0) }} as state from range(6)"
SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('keyed')
    config: {strategy: check, check_cols: [state], unique_key: [k, id]}
"""


class TestFormat:
    @pytest.fixture(scope="class")
    def project_config_update(self, file_format: str) -> dict[str, Any]:
        kind = {"+file_format": file_format}
        return {"models": kind, "snapshots": kind, "seeds": {**kind, "+zorder_by": "name"}}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOT}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], file_format: str) -> dict[str, Any]:
        return {**dbt_profile_target, "zorder_formats": [file_format]}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"names.csv": "name,size\nann,1\nbob,\ncyd,3\n"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='table', zorder_by=['a', 's'], zorder_files=8) }} "
        return {
            "plain.sql": table + QUERY,
            "part.py": PYTHON,
            "batches.sql": BATCHES,
            "guarded.sql": GUARDED,
            "merged.sql": MERGED,
            "merged_from.sql": MERGED_FROM_A_TABLE.format(more=", zorder_by='a'"),
            "merged_plainly.sql": MERGED_FROM_A_TABLE.format(more=""),
            "keyed.sql": KEYED,
            "unordered.sql": "{{ config(materialized='table') }} select * from {{ ref('plain') }}",
            "reader.sql": "select * from {{ zorder_scan(ref('plain'), 'a = 7') }}",
            "schema.yml": PROPERTIES,
        }

    def test_a_project(self, project: Any, spark: SparkSession, file_format: str) -> None:
        results = run_dbt(["build", "--vars", "{end: 3000}"])
        lines = {result.node.name: result.message for result in results}
        assert lines["plain"].startswith("zorder: 8 files, point query on a reads ")
        run_dbt(["run", "--vars", "{end: 3100, more: 1}"])
        name = f"{project.test_schema}."
        for table in ("plain", "part", "batches", "merged", "unordered", "names"):
            info = describe(spark, TableName(project.test_schema, table))
            assert info is not None
            assert info.provider == file_format, table
        source = spark.sql("select id, pmod(hash(id), 1000) as a, concat('k', id % 77) as s from range(3100)")
        assert same_rows(spark.table(name + "plain"), source)
        assert same_rows(spark.table(name + "batches"), source)
        for merged in ("merged", "merged_from", "merged_plainly"):
            assert same_rows(spark.table(name + merged), source.selectExpr("id", "a + 1 as a", "s"))
        assert same_rows(spark.table(name + "part"), source.where("a < 500"))
        assert same_rows(spark.table(name + "reader"), source.where("a = 7"))
        assert spark.table(name + "names").where("size is null").count() == 1
        # one that is dropped first has no earlier version
        history = (
            f"describe history {name}unordered" if file_format == "delta" else f"select * from {name}unordered.history"
        )
        assert spark.sql(history).count() == 2
        if file_format == "delta":  # dbt-spark has no constraints for Iceberg
            guarded = properties(spark, TableName(project.test_schema, "guarded"))
            assert guarded["delta.constraints.positive"] == "id >= 0"
        info = describe(spark, TableName(project.test_schema, "plain"))
        assert info is not None
        assert (info.comment, info.columns[1][2]) == ("all of them", "a number")

    def test_a_merge_by_no_column(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run", "--select", "merged"])
        results = run_dbt(["run", "--select", "merged", "--vars", "{key: idd}"], expect_pass=False)
        assert "unique_key: There is no column 'idd'. Did you mean 'id'?" in results[0].message

    def test_snapshots_by_two_keys(self, project: Any, spark: SparkSession, file_format: str) -> None:
        """With dbt-spark the second run adds two columns of dbt's own, by which a later one fails.

        In Iceberg it fails itself, as dbt-spark does not recognise its own table.
        """
        for state in range(4):
            run_dbt(["build", "--select", "keyed history", "--vars", f"{{state: {state}}}"])
        history = spark.table(f"{project.test_schema}.history")
        assert not [name for name in history.columns if name.startswith("dbt_unique_key")]
        assert history.count() == 24
        assert history.where("dbt_valid_to is null and state = 3").count() == 6

    def test_operations(self, project: Any, spark: SparkSession, file_format: str) -> None:
        run_dbt(["run", "--select", "plain batches"])
        _, log = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", "{model: plain, where: a = 7}"])
        assert f"{file_format} skips files by its own statistics" in log
        _, log = run_dbt_and_capture(["run-operation", "zorder_optimize", "--args", "{model: batches, dry_run: false}"])
        assert "were rewritten into 4" in log
        before = sorted(properties(spark, TableName(project.test_schema, "plain")))
        _, log = run_dbt_and_capture(["run-operation", "zorder_vacuum", "--args", "{dry_run: false, grace_hours: 0}"])
        assert "plain" not in log
        run_dbt(["run-operation", "zorder_verify"])
        verify = ["run-operation", "zorder_verify", "--args", "{model: plain}"]
        _, log = run_dbt_and_capture(verify, expect_pass=False)
        assert f"plain is {file_format}, which keeps its own statistics" in log
        assert sorted(properties(spark, TableName(project.test_schema, "plain"))) == before

    def test_docs(self, project: Any) -> None:
        run_dbt(["run", "--select", "plain"])
        catalog = run_dbt(["docs", "generate"])
        assert {"id", "a", "s"} <= set(catalog.nodes["model.test.plain"].columns)
        assert (Path(project.project_root) / "target" / "catalog.json").exists()
