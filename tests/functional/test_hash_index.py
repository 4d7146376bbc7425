"""A hash index, as a user of dbt runs it: dbt-spark's clustered_by and buckets on models with zorder_by."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from tests.functional.incremental import QUERY, ROWS, Incremental, config

INDEX = "clustered_by='id', buckets=4"


@contextlib.contextmanager
def reading(spark: SparkSession, table: str, counts: set[int]) -> Iterator[None]:
    """Read a table by buckets and without while the block runs; fail if a reader sees other numbers of rows."""
    session, found, done = spark.newSession(), set[int](), threading.Event()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

    def read() -> None:
        while not done.is_set():
            for query in (f"select count(*) from {table}", f"select count(*) from {table} join {table} using (id)"):
                session.sql(f"refresh table {table}")
                found.add(session.sql(query).collect()[0][0])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        done.set()
        reader.join()
    assert found <= counts
    assert min(counts) in found


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

    def test_twice_the_number_splits_and_a_rollback_has_the_old_one(self, project: Any, spark: SparkSession) -> None:
        self.run_with(project, INDEX, "--full-refresh")
        with reading(spark, f"{project.test_schema}.m", {300, 310}):
            done = self.run_with(project, "clustered_by='id', buckets=8", values="{first: 300, end: 310}")
        line = done.results[0].message
        assert "10 rows appended" in line
        assert "files split, 8 buckets in place of 4" in line
        assert self.buckets(project, spark) == (["id"], 8)
        self.check(project, spark, ROWS.format(0, 310))
        self.verify()
        run_dbt(["run-operation", "zorder_rollback", "--args", "{model: m}"])
        assert self.buckets(project, spark) == (["id"], 4)
        self.check(project, spark, ROWS.format(0, 310))
        self.verify()
        run_dbt(["run-operation", "zorder_optimize", "--args", "{model: m, dry_run: false}"])
        assert self.buckets(project, spark) == (["id"], 8)
        self.check(project, spark, ROWS.format(0, 310))
        self.verify()

    def test_another_number_rebuilds(self, project: Any, spark: SparkSession) -> None:
        self.run_with(project, INDEX, "--full-refresh")
        done = self.run_with(project, "clustered_by='id', buckets=6", values="{first: 300, end: 310}")
        assert "built anew with the new rows" in done.results[0].message
        assert self.buckets(project, spark) == (["id"], 6)
        self.check(project, spark, ROWS.format(0, 310))
        self.verify()

    def test_auto_chooses_the_number_and_batches_keep_it(self, project: Any, spark: SparkSession) -> None:
        text = config("clustered_by='id', buckets='auto'").replace("zorder_files=4", "zorder_files=64")
        self.set_model(project, text + QUERY)
        done = run_dbt(["run", "--full-refresh"])
        _, buckets = self.buckets(project, spark)
        assert f", {buckets} buckets" in done.results[0].message
        assert buckets >= 4
        assert "200 rows appended" in self.run(300, 500).message
        assert self.buckets(project, spark) == (["id"], buckets)
        self.check(project, spark, ROWS.format(0, 500))
        self.verify()

    def test_a_misspelled_auto_is_an_error(self, project: Any) -> None:
        self.set_model(project, config("clustered_by='id', buckets='atuo'") + QUERY)
        done = run_dbt(["run"], expect_pass=False)
        assert "buckets is 'atuo', but it must be 'auto', or a whole number" in done.results[0].message
        assert "Did you mean 'auto'?" in done.results[0].message

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
