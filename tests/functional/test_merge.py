"""Incremental models that merge by a key, or delete and insert, as a user of dbt runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.functional.incremental import QUERY, ROWS, Incremental, config

MERGE = "incremental_strategy='merge', unique_key='id'"
CHANGED = QUERY.replace("pmod(hash(id), 100) as a", "{{ var('a', 'pmod(hash(id), 100)') }} as a")


class TestMerge(Incremental):
    def start_by_key(self, project: Any, text: str = MERGE, query: str = CHANGED) -> None:
        self.set_model(project, config(text).replace("['a', 's']", "['id']") + query)
        run_dbt(["run", "--full-refresh", "--vars", "{end: 4000}"])

    def merge(self, first: int, end: int, *, a: str = "-1", ok: bool = True, more: str = "") -> Any:
        values = f"{{first: {first}, end: {end}, a: '{a}'{more}}}"
        return run_dbt(["run", "--vars", values], expect_pass=ok).results[0]

    def test_changed_rows_are_updated_and_the_line_says_what_was_done(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(project)
        found = self.merge(3990, 4005).adapter_response
        assert found["_message"].startswith(
            "zorder: 5 inserted, 10 updated, 1 of 4 files replaced by 1, now 4 files, point query on id reads 1 of 4"
        )
        assert found["merged"] == {
            "inserted": 5, "updated": 10, "unchanged": 0, "deleted": 0, "rewritten": 1, "shared": 3,
        }  # fmt: skip
        assert found["rows_affected"] == 15
        new = ROWS.format(3990, 4005).replace("pmod(hash(id), 100)", "-1")
        self.check(project, spark, f"{ROWS.format(0, 3990)} union all {new}")
        again = self.merge(3990, 4005).adapter_response
        assert again["_message"] == "zorder: 15 unchanged, nothing written"
        assert again["rows_affected"] == 0

    def test_a_full_refresh_and_an_empty_run_work_as_ever(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(project)
        run_dbt(["run", "--full-refresh"])
        self.check(project, spark, ROWS.format(0, 300))
        run_dbt(["run", "--empty"])
        self.check(project, spark, ROWS.format(0, 300))

    def test_a_key_of_two_columns_and_columns_that_stay(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(
            project, "incremental_strategy='merge', unique_key=['id', 's'], merge_exclude_columns=['a']", CHANGED
        )
        found = self.merge(0, 10, a="-1").adapter_response
        assert found["merged"]["unchanged"] == 10
        self.check(project, spark, ROWS.format(0, 4000))

    def test_predicates_and_partitions(self, project: Any, spark: SparkSession) -> None:
        text = f"{MERGE}, partition_by='p', incremental_predicates=['DBT_INTERNAL_DEST.id >= 5']"
        self.start_by_key(project, text)
        found = self.merge(0, 10).adapter_response["merged"]
        assert (found["inserted"], found["updated"]) == (5, 5)
        new = ROWS.format(0, 10).replace("pmod(hash(id), 100)", "-1")
        self.check(project, spark, f"{ROWS.format(0, 5)} union all {ROWS.format(10, 4000)} union all {new}")

    def test_delete_insert(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(project, "incremental_strategy='delete+insert', unique_key='id'", CHANGED)
        found = self.merge(0, 10).adapter_response
        assert found["_message"].startswith("zorder: 10 inserted, 10 deleted, 1 of 4 files replaced by 1")
        new = ROWS.format(0, 10).replace("pmod(hash(id), 100)", "-1")
        self.check(project, spark, f"{ROWS.format(10, 4000)} union all {new}")

    def test_a_contract_is_checked_before_rows_are_merged(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(project, f"{MERGE}, on_schema_change='fail'")
        contract = "{'contract': {'enforced': true}}"
        schema = (
            "models:\n  - name: m\n    config: " + contract + "\n    columns:\n"
            "      - {name: id, data_type: bigint}\n      - {name: a, data_type: int}\n"
            "      - {name: s, data_type: string}\n      - {name: p, data_type: int}\n"
        )
        path = Path(project.project_root) / "models" / "schema.yml"
        path.write_text(schema)
        try:
            self.merge(0, 10)
            assert "data type mismatch" in self.merge(0, 10, a="true", ok=False).message
        finally:
            path.unlink()
        new = ROWS.format(0, 10).replace("pmod(hash(id), 100)", "-1")
        self.check(project, spark, f"{ROWS.format(10, 4000)} union all {new}")

    def test_a_python_model_merges(self, project: Any, spark: SparkSession) -> None:
        model = Path(project.project_root) / "models" / "py.py"
        model.write_text(
            "def model(dbt, session):\n"
            "    dbt.config(materialized='incremental', zorder_by=['id'], zorder_files=4,\n"
            "               incremental_strategy='merge', unique_key='id')\n"
            "    first = 3990 if dbt.is_incremental else 0\n"
            "    return session.range(first, 4005 if dbt.is_incremental else 4000).selectExpr(\n"
            "        'id', 'id + ' + str(first) + ' as a')\n"
        )
        try:
            run_dbt(["run", "--select", "py"])
            found = run_dbt(["run", "--select", "py"]).results[0].adapter_response
        finally:
            model.unlink()
        assert (found["merged"]["inserted"], found["merged"]["updated"]) == (5, 10)
        table = spark.table(f"{project.test_schema}.py")
        assert table.count() == 4005
        assert table.where("a = id + 3990").count() == 15

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (f"{MERGE}, merge_update_columns=7", "merge_update_columns is 7, but it must be a text or a list"),
            (f"{MERGE}, merge_update_columns=['b']", "merge_update_columns: There is no column 'b'"),
            (f"{MERGE}, merge_update_columns=['a'], merge_exclude_columns=['s']", "are both set"),
            ("incremental_strategy='merge', unique_key='idd'", "There is no column 'idd'. Did you mean 'id'?"),
            (f"{MERGE}, incremental_predicates=['x.y = 1']", "incremental_predicates: Spark cannot read 'x.y = 1'"),
            ("incremental_strategy='mrege', unique_key='id'", "Did you mean 'merge'?"),
        ],
    )
    def test_bad_input_changes_nothing(self, project: Any, spark: SparkSession, text: str, words: str) -> None:
        self.start_by_key(project)
        self.set_model(project, config(text).replace("['a', 's']", "['id']") + CHANGED)
        _, log = run_dbt_and_capture(["run", "--vars", "{first: 0, end: 10, a: '-1'}"], expect_pass=False)
        assert words in " ".join(log.split())
        self.check(project, spark, ROWS.format(0, 4000))

    def test_keys_that_come_twice_are_named(self, project: Any, spark: SparkSession) -> None:
        self.start_by_key(project)
        twice = "select * from (" + CHANGED + ") union all select * from (" + CHANGED + ")"
        self.set_model(project, config(MERGE).replace("['a', 's']", "['id']") + twice)
        message = self.merge(7, 8, ok=False).message
        assert "1 row of" in message
        assert "match two rows of this run each" in message
        assert "unique_key is id; among its repeated values: 7." in message
        self.check(project, spark, ROWS.format(0, 4000))


class TestMergeWithoutZorder(Incremental):
    def test_a_plain_parquet_table_has_no_merge(self, project: Any) -> None:
        self.set_model(project, "{{ config(materialized='incremental', " + MERGE + ") }} select 1 as id")
        _, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "You can only choose this strategy when file_format is set to 'delta' or 'iceberg' or 'hudi'" in log
