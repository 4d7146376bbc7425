"""A hash index, as a user of dbt runs it: dbt-spark's clustered_by and buckets on models with zorder_by."""

from __future__ import annotations

from typing import Any

from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from tests.functional.incremental import QUERY, ROWS, Incremental, config

INDEX = "clustered_by='id', buckets=4"


class TestHashIndex(Incremental):
    def run_with(self, project: Any, text: str, *args: str, values: str = "{}") -> Any:
        self.set_model(project, config(text) + QUERY)
        return run_dbt(["run", "--vars", values, *args])

    def buckets(self, project: Any, spark: SparkSession) -> tuple[list[str], int]:
        info = describe(spark, TableName(project.test_schema, "m"))
        assert info is not None
        return list(info.bucket_columns), info.bucket_count

    def verify(self) -> None:
        """Fail if a file's name has another bucket than its rows."""
        run_dbt(["run-operation", "zorder_verify", "--args", "{model: m}"])

    def test_batches_keep_the_buckets_and_a_key_reads_one(self, project: Any, spark: SparkSession) -> None:
        self.run_with(project, INDEX, "--full-refresh")
        self.run_with(project, INDEX, values="{first: 300, end: 500}")
        self.check(project, spark, ROWS.format(0, 500))
        assert self.buckets(project, spark) == (["id"], 4)
        self.verify()
        table = f"{project.test_schema}.m"
        found = spark.sql(f"select id, input_file_name() as file from {table} where id = 77").collect()
        bucket = spark.sql("select pmod(hash(77L), 4)").collect()[0][0]
        assert [row.id for row in found] == [77]
        assert f"_{bucket:05d}." in found[0].file

    def test_another_number_rebuilds_and_a_rollback_has_the_old_one(self, project: Any, spark: SparkSession) -> None:
        self.run_with(project, INDEX, "--full-refresh")
        self.run_with(project, "clustered_by='id', buckets=8", values="{first: 300, end: 310}")
        assert self.buckets(project, spark) == (["id"], 8)
        self.check(project, spark, ROWS.format(0, 310))
        self.verify()
        run_dbt(["run-operation", "zorder_rollback", "--args", "{model: m}"])
        assert self.buckets(project, spark) == (["id"], 4)
        self.check(project, spark, ROWS.format(0, 300))
        self.verify()

    def test_a_merge_and_a_clone_and_an_optimize_have_the_index(self, project: Any, spark: SparkSession) -> None:
        text = f"{INDEX}, incremental_strategy='merge', unique_key='id'"
        self.run_with(project, text, "--full-refresh")
        merged = self.run_with(project, text, values="{first: 290, end: 320}").results[0].adapter_response["merged"]
        assert (merged["inserted"], merged["unchanged"]) == (20, 10)
        self.check(project, spark, ROWS.format(0, 320))
        run_dbt(["run-operation", "zorder_optimize", "--args", "{model: m}"])
        assert self.buckets(project, spark) == (["id"], 4)
        self.verify()
        self.check(project, spark, ROWS.format(0, 320))
